"""Which value of a contract stands for which of the domain."""

from __future__ import annotations

from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.ingest.v1 import settings_pb2

from services.query.domain.modes import AnswerMode
from services.query.domain.values import Form, RecordKind, RetrievalMode

FORMS = {
    envelope_pb2.FORM_TEXT: Form.TEXT,
    envelope_pb2.FORM_STRUCTURED: Form.STRUCTURED,
    envelope_pb2.FORM_INFORMAL: Form.INFORMAL,
}
FORM_VALUES = {form: value for value, form in FORMS.items()}
KINDS = {index_pb.RECORD_KIND_CHUNK: RecordKind.CHUNK, index_pb.RECORD_KIND_DOCUMENT: RecordKind.DOCUMENT}
KIND_VALUES = {kind: value for value, kind in KINDS.items()}
RETRIEVAL_MODES = {
    settings_pb2.RETRIEVAL_MODE_HYBRID: RetrievalMode.HYBRID,
    settings_pb2.RETRIEVAL_MODE_LEXICAL: RetrievalMode.LEXICAL,
    settings_pb2.RETRIEVAL_MODE_SEMANTIC: RetrievalMode.SEMANTIC,
}
ANSWER_MODES = {
    settings_pb2.ANSWER_MODE_LIGHT: AnswerMode.LIGHT,
    settings_pb2.ANSWER_MODE_VERIFIED: AnswerMode.VERIFIED,
    settings_pb2.ANSWER_MODE_AUDIT: AnswerMode.AUDIT,
}
ANSWER_MODE_VALUES = {mode: value for value, mode in ANSWER_MODES.items()}
