"""Searches at a moment: which view a request gets, and what is shown where nothing in force matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.kernel.errors import NotAvailableYet
from services.query.domain.intent import Intent, read_intent
from services.query.domain.living import Moment, Reach, View
from services.query.domain.moments import read_point_in_time
from services.query.domain.outcomes import SearchOutcome
from services.query.domain.profile import LivingNumbers, Profile
from services.query.retrieval import Request, Retriever

NOTHING_IN_FORCE = "nothing in force matches: superseded and deprecated documents are shown"
_NO_TIME = "profile v1 knows no time: leave {what} out, or set the crate's profile to v3.1"


@dataclass(frozen=True, slots=True)
class Look:
    """A search as it came.

    Attributes:
        request: What is looked for.
        moment: What held then; the default is now.
        reach: None: as the profile and the query's words say.
        limit: Results at most.
        by_document: One result per document.
    """

    request: Request
    moment: Moment = field(default_factory=Moment)
    reach: Reach | None = None
    limit: int = 10
    by_document: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A request as it is understood.

    Attributes:
        request: With its view.
        intent: Of its words.
        otherwise: What to look for where nothing is found; None: nothing else.
    """

    request: Request
    intent: Intent
    otherwise: Request | None = None


class Searcher:
    """Searches in the view that a request gets."""

    def __init__(self, *, retriever: Retriever, clock: Callable[[], datetime]) -> None:
        self._retriever = retriever
        self._clock = clock

    async def search(self, look: Look) -> SearchOutcome:
        """Find records.

        Args:
            look: The search.

        Returns:
            Results; where the profile searches what is in force and nothing of that matches, what isn't any more;
            where nothing matches at the moment that the query's words name, what is in force now.

        Raises:
            NotAvailableYet: When the profile knows no time and the search names a moment or a reach.
            Rejected: When the index refuses the moment.
            Unavailable: When no lane answers.
        """
        profile = look.request.profile
        refuse_past(profile, look.moment, look.reach)
        if profile.living is None:
            return await self._retriever.search(look.request, limit=look.limit, by_document=look.by_document)
        reading = read_view(look.request, look.moment, look.reach, self._clock())
        outcome = await self._widening(reading.request, look)
        if outcome.results or reading.otherwise is None:
            return outcome
        found = await self._widening(reading.otherwise, look)
        return replace(found, notes=(nothing_then(reading.request), *found.notes)) if found.results else outcome

    async def _widening(self, request: Request, look: Look) -> SearchOutcome:
        outcome = await self._retriever.search(request, limit=look.limit, by_document=look.by_document)
        if outcome.results or look.reach is not None or request.view.reach is not Reach.IN_FORCE:
            return outcome
        wider = replace(request, view=replace(request.view, reach=Reach.EVERY))
        found = await self._retriever.search(wider, limit=look.limit, by_document=look.by_document)
        return replace(found, notes=(NOTHING_IN_FORCE,)) if found.results else outcome


def refuse_past(profile: Profile, moment: Moment, reach: Reach | None = None) -> None:
    """Refuse what a profile without time can't do.

    Args:
        profile: The manifest.
        moment: As asked.
        reach: As asked; None when it isn't.

    Raises:
        NotAvailableYet: When the profile knows no time and one was named.
    """
    if profile.living is not None:
        return
    if moment.as_of is not None or moment.at:
        raise NotAvailableYet(_NO_TIME.format(what="as_of and at"))
    if reach not in {None, Reach.CURRENT}:
        raise NotAvailableYet(_NO_TIME.format(what="reach"))


def living_numbers(profile: Profile) -> LivingNumbers:
    """The numbers of a profile that knows time.

    Raises:
        NotAvailableYet: When it doesn't.
    """
    if profile.living is None:
        raise NotAvailableYet(_NO_TIME.format(what="as_of and at"))
    return profile.living


def nothing_then(request: Request) -> str:
    """Tell that nothing was found at the moment that a request's words name."""
    as_of = request.view.moment.as_of
    named = as_of.date().isoformat() if as_of else "then"
    return f"nothing matches as of {named}, the time that the words name: what is in force now is used"


def read_view(request: Request, moment: Moment, reach: Reach | None, now: datetime) -> Reading:
    """Work out what a request may see, and what it wants.

    Args:
        request: What is looked for.
        moment: As the caller says; his as_of goes before the one that the words name.
        reach: As the caller says; None: by the words.
        now: With a time zone.

    Returns:
        The request with its view and its intent. Where the words name the moment, without these words, and beside it
        the request with all its words about now: a year may be part of what is asked for.
    """
    numbers = living_numbers(request.profile)
    point = read_point_in_time(request.query, now) if numbers.features.question_moment else None
    if point is None:
        return _reading(request, request.query, reach, Moment(moment.as_of or now, moment.at))
    reading = _reading(request, point.text, reach, Moment(moment.as_of or point.as_of, moment.at))
    if moment.as_of is not None:
        return reading
    return replace(reading, otherwise=_reading(request, request.query, reach, Moment(now, moment.at)).request)


def _reading(request: Request, query: str, reach: Reach | None, moment: Moment) -> Reading:
    intent = read_intent(query)
    return Reading(replace(request, query=query, view=View(reach or intent.reach, moment)), intent)
