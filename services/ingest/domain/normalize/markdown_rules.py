"""Block rules of Markdown that give the structure only, in a fraction of the time.

markdown-it's own rules for paragraphs, setext headings and tables find the same lines, but try every other rule on every
line, twice, and make objects for every cell. These look at the first character of a line before anything else.
"""

import re

from markdown_it.rules_block import StateBlock

UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER_CELL = re.compile(r":?-+:?")
# First characters of lines that another block may start at, digits apart.
_MARKERS = frozenset("`~>*-_+#<")


def prose(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: ARG001  (a rule's shape)
    """A paragraph, or a heading that is underlined with "=" or "-"."""
    rules = state.md.block.ruler.getRules("paragraph")
    around, state.parentType = state.parentType, "paragraph"
    line, level = start_line + 1, 0
    while line < state.lineMax and not state.isEmpty(line):
        # Deeply indented lines go on with a paragraph, and so do lazy lines of a quote, which are marked with -1.
        if state.sCount[line] - state.blkIndent <= 3:
            level = _underline(state, line) if line < end_line else 0
            if level or (state.sCount[line] >= 0 and _ends_text(state, line, end_line, rules)):
                break
        line += 1
    content = state.getLines(start_line, line, state.blkIndent, False).strip()
    state.line = line + 1 if level else line
    tag = f"h{level}" if level else "p"
    kind = "heading" if level else "paragraph"
    state.push(f"{kind}_open", tag, 1).map = [start_line, state.line]
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = content, [start_line, line], []
    state.push(f"{kind}_close", tag, -1)
    state.parentType = around
    return True


def _first(state: StateBlock, line: int) -> str:
    place = state.bMarks[line] + state.tShift[line]
    return state.src[place] if place < state.eMarks[line] else ""


def _underline(state: StateBlock, line: int) -> int:
    """Level of the heading that a line underlines, 0 if it doesn't."""
    marker = _first(state, line)
    if marker not in {"=", "-"} or state.sCount[line] < state.blkIndent:
        return 0
    place = state.bMarks[line] + state.tShift[line]
    if state.src[place : state.eMarks[line]].rstrip(" \t").strip(marker):
        return 0
    return 1 if marker == "=" else 2


def _ends_text(state: StateBlock, line: int, end_line: int, rules: list) -> bool:  # type: ignore[type-arg]
    """Whether another block starts at a line."""
    first = _first(state, line)
    # A table starts at its header, which only the line below it tells.
    below = _first(state, line + 1) if line + 1 < end_line else ""
    if first not in _MARKERS and not first.isdigit() and (below == "" or below not in "|-:"):
        return False
    return any(rule(state, line, end_line, True) for rule in rules)


def table(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """A table as GitHub has it: a header, a row of dashes with as many cells, and rows up to a blank line."""
    delimiter = start_line + 1
    if start_line + 2 > end_line or state.sCount[delimiter] < state.blkIndent or state.is_code_block(delimiter):
        return False
    cells = _delimiter_cells(state, delimiter)
    if not cells or state.is_code_block(start_line) or _header_cells(state, start_line) != cells:
        return False
    if silent:
        return True
    around, state.parentType = state.parentType, "table"
    rules = state.md.block.ruler.getRules("blockquote")
    line = start_line + 2
    while line < end_line and state.sCount[line] >= state.blkIndent and _first(state, line):
        first = _first(state, line)
        if (first in _MARKERS or first.isdigit()) and any(rule(state, line, end_line, True) for rule in rules):
            break
        if state.is_code_block(line):
            break
        line += 1
    state.push("table_open", "table", 1).map = [start_line, line]
    state.push("table_close", "table", -1)
    state.parentType = around
    state.line = line
    return True


def _delimiter_cells(state: StateBlock, line: int) -> int:
    """Cells of a row of dashes, 0 if it is none."""
    place, end = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    start = state.src[place : min(place + 2, end)]
    # A dash and a space start a list item.
    if len(start) < 2 or start[0] not in "|-:" or start[1] not in "|-: \t" or (start[0] == "-" and start[1] in " \t"):
        return 0
    cells = [cell.strip() for cell in state.src[place:end].split("|")]
    inner = cells[(not cells[0]) : len(cells) - (len(cells) > 1 and not cells[-1])]
    return len(inner) if all(_DELIMITER_CELL.fullmatch(cell) for cell in inner) else 0


def _header_cells(state: StateBlock, line: int) -> int:
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
    pipes = len(UNESCAPED_PIPE.findall(text))
    if "|" not in text:
        return 0
    outer = text.startswith("|") + (text.endswith("|") and not text.endswith("\\|"))
    return pipes + 1 - outer
