"""The charset that an HTML file states in itself, read before it can be decoded."""

import re

# The standard looks at 1,024 bytes; real pages have the tag behind comments and scripts.
_HEAD_BYTES = 16_384
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<meta[\s/][^>]*", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9._:+()-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")


def declared_in_html(body: bytes) -> str:
    """The label in a meta tag or XML declaration, empty if there is none.

    A label that says UTF-16 is taken for UTF-8, since it could be read byte by byte (WHATWG HTML, 13.2.3.3).
    """
    head = _COMMENT.sub(b"", body[:_HEAD_BYTES])
    found = next((charset for meta in _META.finditer(head) if (charset := _CHARSET.search(meta.group()))), None)
    found = found or _XML.match(head)
    if not found:
        return ""
    label = found[1].decode("ascii").lower()
    return "utf-8" if label.startswith(("utf-16", "utf-32", "ucs-2")) else label
