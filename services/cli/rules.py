"""Rules of living states as options of `crate create` and `crate set`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from affidavit.ingest.v1 import settings_pb2
from google.protobuf import json_format

from services.kernel.errors import Rejected

Words = Annotated[
    list[str] | None,
    typer.Option(
        "--state-word",
        metavar="WORD=STATE",
        help="Status word of this crate and what it means: superseded, deprecated, dormant, draft or active. "
        "WORD= takes it out again.",
    ),
]
Windows = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        metavar="class=NAME,stale=DAYS,dormant=DAYS",
        help="When documents of a class (metadata key class; without it, all others) go stale or dormant. 0 is off.",
    ),
]
Series = Annotated[
    list[str] | None,
    typer.Option(
        "--superseding-series",
        metavar="NAME",
        help="Version series whose newest version supersedes the others; * for every one, -NAME takes it out again.",
    ),
]
RulesFile = Annotated[
    Path | None,
    typer.Option(
        "--state-rules", exists=True, dir_okay=False, help="JSON file with all rules; replaces those that there are."
    ),
]
_DAYS = {"stale": "stale_after_days", "dormant": "dormant_after_days"}


@dataclass(frozen=True, slots=True)
class Changes:
    """What a command line says about rules.

    Attributes:
        words: WORD=STATE.
        windows: class=NAME,stale=DAYS,dormant=DAYS.
        series: Names.
        file: All rules as JSON; the others change these.
    """

    words: list[str]
    windows: list[str]
    series: list[str]
    file: Path | None

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.words or self.windows or self.series or self.file)

    def applied(self, held: settings_pb2.StateRules) -> settings_pb2.StateRules:
        """Change rules.

        Args:
            held: Rules before.

        Returns:
            Rules after; the server checks them.

        Raises:
            Rejected: When an option or the file can't be read.
        """
        rules = settings_pb2.StateRules()
        rules.CopyFrom(_read(self.file) if self.file else held)
        for pair in self.words:
            word, sign, state = pair.partition("=")
            folded = " ".join(word.split()).casefold()
            if not sign or not folded:
                raise Rejected(f"--state-word {pair!r} has not the form WORD=STATE, for example Sunset=deprecated")
            if state.strip():
                rules.status_words[folded] = state.strip()
            else:
                rules.status_words.pop(folded, None)
        for text in self.windows:
            _put_window(rules, text)
        for name in self.series:
            kept = [known for known in rules.superseding_series if known != name.removeprefix("-")]
            del rules.superseding_series[:]
            rules.superseding_series.extend(kept if name.startswith("-") else [*kept, name])
        return rules


def rows(rules: settings_pb2.StateRules) -> Iterator[tuple[str, object]]:
    """Rules as rows of a table of settings."""
    for word, state in sorted(rules.status_words.items()):
        yield f"state word {word!r}", state
    for window in rules.windows:
        name = f"window of class {window.document_class!r}" if window.document_class else "window of other classes"
        days = ((label, getattr(window, field)) for label, field in _DAYS.items())
        yield name, ", ".join(f"{label} after {count} days" for label, count in days if count) or "off"
    if rules.superseding_series:
        yield "superseding series", ", ".join(rules.superseding_series)


def _put_window(rules: settings_pb2.StateRules, text: str) -> None:
    """Set the limits that are named of a class's window; a window that is off altogether goes."""
    given = dict(part.partition("=")[::2] for part in text.split(","))
    fields = {name.strip().lower(): value.strip() for name, value in given.items()}
    name = " ".join(fields.pop("class", "").split()).casefold()
    if not fields or fields.keys() - _DAYS or not all(days.isdecimal() for days in fields.values()):
        raise Rejected(
            f"--window {text!r} has not the form class=NAME,stale=DAYS,dormant=DAYS: one of the two is enough"
        )
    windows = {window.document_class: window for window in rules.windows}
    window = windows.setdefault(name, settings_pb2.StateWindow(document_class=name))
    for label, days in fields.items():
        setattr(window, _DAYS[label], min(int(days), 2**32 - 1))
    kept = [window for window in windows.values() if window.stale_after_days or window.dormant_after_days]
    copies = settings_pb2.StateRules(windows=kept)
    rules.ClearField("windows")
    rules.windows.MergeFrom(copies.windows)


def _read(file: Path) -> settings_pb2.StateRules:
    try:
        return json_format.Parse(file.read_bytes(), settings_pb2.StateRules())
    except (json_format.ParseError, UnicodeDecodeError) as error:
        example = '{"status_words": {"sunset": "deprecated"}, "windows": [], "superseding_series": []}'
        raise Rejected(f"{file} holds no state rules ({error}): write {example}") from error
