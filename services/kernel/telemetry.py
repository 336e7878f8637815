"""Logs, metrics and traces without content: ids, kinds, positions and times only."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import time
from collections.abc import Iterator

from opentelemetry import propagate, trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from services.kernel.envelope import Event

# Below "warning" they log addresses and what providers send in headers.
_TELL_CONTENT = ("httpx", "httpcore")
_tracer = trace.get_tracer("affidavit")
_log = logging.getLogger("affidavit.events")
REGISTRY = CollectorRegistry()
_handled = Histogram("affidavit_event_seconds", "Time to handle one event", ["role", "event"], registry=REGISTRY)
_failed = Counter(
    "affidavit_event_failures_total", "Failed attempts", ["role", "event", "code", "final"], registry=REGISTRY
)
rpc_seconds = Histogram("affidavit_rpc_seconds", "Time to serve one RPC", ["method", "status"], registry=REGISTRY)
applied_position = Gauge(
    "affidavit_projection_position", "Last applied stream position", ["role", "projection"], registry=REGISTRY
)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record; of an exception only its kind and place, since its text may quote content."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = type(error).__name__
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            if place is not None:
                line["place"] = f"{place.tb_frame.f_code.co_filename.rsplit('/', 3)[-1]}:{place.tb_lineno}"
        return json.dumps(line, ensure_ascii=False)


def configure_logging(level: str) -> None:
    """Send logs to stderr as JSON lines.

    Args:
        level: Name of the lowest level shown.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TELL_CONTENT:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextlib.contextmanager
def handling(role: str, event: Event) -> Iterator[None]:
    """Time one event's handling and continue its trace."""
    started = time.perf_counter()
    context = propagate.extract({"traceparent": event.traceparent} if event.traceparent else {})
    with _tracer.start_as_current_span(f"{role} {event.name}", context=context):
        yield
    _seconds(role, event.name).observe(time.perf_counter() - started)


@functools.cache
def _seconds(role: str, name: str) -> Histogram:
    return _handled.labels(role, name)


def failed(role: str, event: Event, error: BaseException, *, final: bool) -> None:
    """Count and log a failed attempt."""
    code = getattr(error, "code", "internal")
    _failed.labels(role, event.name, code if isinstance(code, str) else "internal", str(final).lower()).inc()
    _log.warning(
        "%s could not handle %s at %s (%s, attempt %s)%s",
        role,
        event.name,
        event.position,
        type(error).__name__,
        event.deliveries,
        "; given up" if final else "",
        exc_info=None if isinstance(code, str) and code != "internal" else error,
    )
