"""Names of a document: its stem, its extension, and the domain that it comes from."""

from urllib.parse import urlsplit


def _name(source_id: str) -> str:
    return source_id.rstrip("/").rsplit("/", 1)[-1]


def extension(source_id: str) -> str:
    """Extension of a source id, lower case and without the dot; empty if it has none."""
    stem, dot, suffix = _name(source_id).rpartition(".")
    return suffix.lower() if dot and stem else ""


def stem(source_id: str) -> str:
    """Name of a source id without folders and extension."""
    name = _name(source_id)
    suffix = extension(source_id)
    # "policy-v1.0" has no extension: a suffix of digits is part of the name.
    return name[: -len(suffix) - 1] if suffix and not suffix.isdigit() else name


def source_domain(uri: str, source_id: str, crate: str) -> str:
    """The independent origin of a document.

    Args:
        uri: Where it was found; may be empty or no URI.
        source_id: Its id, a path with "/" as separator where it came from a folder.
        crate: Its crate.

    Returns:
        The host of the URI in lower case, else the first folder of the source id, else the crate.
    """
    try:
        host = urlsplit(uri).hostname
    except ValueError:
        host = None
    folder, slash, _ = source_id.lstrip("/").partition("/")
    return host or (folder if slash and folder not in {"", ".", ".."} else "") or crate
