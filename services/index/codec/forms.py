"""Forms between protobuf and domain."""

from __future__ import annotations

from affidavit.event.v1 import envelope_pb2 as event_pb

from services.index.domain.records import Form

_FORMS = {
    event_pb.FORM_UNSPECIFIED: Form.TEXT,
    event_pb.FORM_TEXT: Form.TEXT,
    event_pb.FORM_STRUCTURED: Form.STRUCTURED,
    event_pb.FORM_INFORMAL: Form.INFORMAL,
}
_FORM_VALUES = {
    Form.TEXT: event_pb.FORM_TEXT,
    Form.STRUCTURED: event_pb.FORM_STRUCTURED,
    Form.INFORMAL: event_pb.FORM_INFORMAL,
}


def form(value: int) -> Form:
    """Read a form; one that isn't known is weighed like text."""
    return _FORMS.get(event_pb.Form.ValueType(value), Form.TEXT)


def form_value(form: Form) -> event_pb.Form.ValueType:
    """Write a form."""
    return _FORM_VALUES[form]
