"""Which documents an answer cites, in which role, and which unit of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.query.domain.evidence import Scored
from services.query.domain.extractive import CitedPlace, choose, compose
from services.query.domain.living import LivingState, Role, StateReport
from services.query.domain.profile import PPM, Profile
from services.query.domain.units import Unit

_LEADS = {Role.SUPPORT: "", Role.CONTRA: "Against it: ", Role.CONTEXT: "For context: "}


@dataclass(frozen=True, slots=True)
class Choice:
    """One unit that an answer cites."""

    unit: Unit
    role: Role = Role.SUPPORT

    @property
    def document_id(self) -> str:
        """Of the unit's passage."""
        return self.unit.passage.key.document_id


def best_units(ranked: Sequence[Scored]) -> dict[str, Unit]:
    """Find the best unit of each document.

    Args:
        ranked: Best first.

    Returns:
        By document id, in the order of their units.
    """
    best: dict[str, Unit] = {}
    for scored in ranked:
        best.setdefault(scored.unit.passage.key.document_id, scored.unit)
    return best


def choose_units(ranked: Sequence[Scored], allowed: frozenset[str], profile: Profile) -> tuple[Choice, ...]:
    """Choose the units whose score answers.

    Args:
        ranked: Best first.
        allowed: Documents that may be the answer.
        profile: Manifest.

    Returns:
        As profile v1 chooses, among the allowed documents.
    """
    numbers = profile.evidence
    held = tuple(scored for scored in ranked if scored.unit.passage.key.document_id in allowed)
    chosen = choose(
        held,
        most=numbers.max_sentences,
        margin=numbers.companion_margin_ppm / PPM,
        duplicate=numbers.duplicate_ppm / PPM,
    )
    return tuple(Choice(unit) for unit in chosen)


def put_first(
    wanted: Sequence[tuple[str, Role]], units: Mapping[str, Unit], others: Sequence[Choice]
) -> tuple[Choice, ...]:
    """Put documents that the question's intent picks ahead of those that answer by their words.

    Args:
        wanted: Documents with their roles, in order.
        units: Best unit of each document; one without is left out.
        others: Units that answer.

    Returns:
        For each wanted document the units that answer, else its best one, in its role; then the others.
    """
    roles = dict(wanted)
    first: list[Choice] = []
    for document_id, role in roles.items():
        own = [replace(choice, role=role) for choice in others if choice.document_id == document_id]
        if not own and document_id in units:
            own = [Choice(units[document_id], role)]
        first += own
    return (*first, *(choice for choice in others if choice.document_id not in roles))


def limit_documents(choices: Sequence[Choice], *, most: int) -> tuple[Choice, ...]:
    """Keep the units of the first documents, each unit once.

    Args:
        choices: In order.
        most: Documents at most.

    Returns:
        Those kept.
    """
    kept: list[Choice] = []
    documents: set[str] = set()
    seen: set[tuple[str, int, int, int]] = set()
    for choice in choices:
        key = choice.unit.passage.key
        place = (key.document_id, key.ordinal, choice.unit.start, choice.unit.end)
        if place in seen or (key.document_id not in documents and len(documents) == most):
            continue
        seen.add(place)
        documents.add(key.document_id)
        kept.append(choice)
    return tuple(kept)


def with_other_side(
    choices: Sequence[Choice], against: Mapping[str, str], units: Mapping[str, Unit], *, least: int, most: int
) -> tuple[Choice, ...]:
    """Cite the documents that contradict cited ones.

    Args:
        choices: In order.
        against: From each contradicting document to the cited one that it stands against, in order.
        units: Best unit of each document.
        least: Supporting documents that don't give way, at least 1.
        most: Documents at most; further supporting ones give way.

    Returns:
        The choices; a contradicting document that supported the answer changes its role unless it comes first.
    """
    first = choices[0].document_id if choices else ""
    sides = [item for item in against if item != first and item in units]
    own = [choice for choice in choices if choice.document_id not in sides]
    documents = list(dict.fromkeys(choice.document_id for choice in own))
    room = max(least, most - len(sides))
    kept = set(documents[:room])
    contra = [
        replace(choice, role=Role.CONTRA)
        for item in sides
        for choice in ([one for one in choices if one.document_id == item] or [Choice(units[item])])
    ]
    return limit_documents([*(choice for choice in own if choice.document_id in kept), *contra], most=most)


def with_second_domain(
    choices: Sequence[Choice], candidates: Sequence[str], units: Mapping[str, Unit], *, needed: int, most: int
) -> tuple[Choice, ...]:
    """Bring in evidence of further source domains where the mode needs them.

    Args:
        choices: In order.
        candidates: Admitted documents that may be the answer, best first.
        units: Best unit of each document.
        needed: Source domains.
        most: Documents at most; the last supporting document of a domain that is cited otherwise
            gives way, else the last that doesn't support.

    Returns:
        The choices, with more domains among their supporting documents where there are any.
    """
    held = list(choices)
    for document_id in candidates:
        supporting = [choice for choice in held if choice.role is Role.SUPPORT]
        domains = [choice.unit.passage.source_domain for choice in supporting]
        if len(set(domains)) >= needed:
            break
        unit = units.get(document_id)
        if unit is None or unit.passage.source_domain in domains or document_id in {one.document_id for one in held}:
            continue
        if len({choice.document_id for choice in held}) >= most:
            others = [choice.document_id for choice in held if choice.role is not Role.SUPPORT]
            spare = _spare(supporting) or next(reversed(others), "")
            if not spare:
                break
            held = [choice for choice in held if choice.document_id != spare]
        held.insert(sum(choice.role is Role.SUPPORT for choice in held), Choice(unit))
    return tuple(held)


def place_choices(choices: Sequence[Choice]) -> tuple[CitedPlace, ...]:
    """Write the answer's places, each in its role.

    Args:
        choices: In the order of the answer.

    Returns:
        Cited places, numbered from 1; what can't be located is left out. The words before a place that doesn't
        support the answer say so.
    """
    places: list[CitedPlace] = []
    for choice in choices:
        for place in compose((choice.unit,)):
            lead = _LEADS[choice.role] if not places or places[-1].role is not choice.role else ""
            places.append(replace(place, marker=len(places) + 1, role=choice.role, lead=lead))
    return tuple(places)


def state_notes(places: Sequence[CitedPlace], states: Mapping[tuple[str, int], StateReport]) -> tuple[str, ...]:
    """Tell of cited documents that aren't simply in force.

    Args:
        places: Cited places.
        states: By document id and revision.

    Returns:
        One note per document, in the order of citing.
    """
    notes: dict[str, str] = {}
    for place in places:
        key = place.unit.passage.key
        report = states.get((key.document_id, key.revision))
        if report is not None and key.document_id not in notes:
            notes[key.document_id] = _state_note(place.marker, report)
    return tuple(note for note in notes.values() if note)


def _state_note(marker: int, report: StateReport) -> str:
    told = f"[{marker}] {report.name}"
    why = f" ({report.detail})" if report.detail else ""
    if report.state in {LivingState.SUPERSEDED, LivingState.DEPRECATED, LivingState.DORMANT}:
        return f"{told} is {report.state.value}{why}"
    if report.state is LivingState.STALE:
        return f"{told} is stale: its review or expiry date has passed{why}"
    if report.state is LivingState.CONTESTED:
        by = "it and another document supersede each other" if report.in_circle else "another document contradicts it"
        return f"{told} is contested: {by}"
    return f"{told} is not in force yet{why}" if report.not_in_force_yet else ""


def _spare(supporting: Sequence[Choice]) -> str:
    """The last document whose domain another supporting document has as well; the first one stays."""
    domains = {choice.document_id: choice.unit.passage.source_domain for choice in supporting}
    for document_id in list(domains)[:0:-1]:
        if sum(domain == domains[document_id] for domain in domains.values()) > 1:
            return document_id
    return ""
