"""Which value of a contract stands for which of the domain."""

from __future__ import annotations

from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import living_pb2
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2 as pb
from affidavit.receipt.v1 import receipt_service_pb2 as receipt_pb

from services.query.domain.living import LivingState, Reach, Role
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
REACHES = {
    living_pb2.REACH_CURRENT: Reach.CURRENT,
    living_pb2.REACH_IN_FORCE: Reach.IN_FORCE,
    living_pb2.REACH_EVERY: Reach.EVERY,
}
REACH_VALUES = {reach: value for value, reach in REACHES.items()}
STATES = {
    living_pb2.LIVING_STATE_ACTIVE: LivingState.ACTIVE,
    living_pb2.LIVING_STATE_SUPERSEDED: LivingState.SUPERSEDED,
    living_pb2.LIVING_STATE_DEPRECATED: LivingState.DEPRECATED,
    living_pb2.LIVING_STATE_CONTESTED: LivingState.CONTESTED,
    living_pb2.LIVING_STATE_STALE: LivingState.STALE,
    living_pb2.LIVING_STATE_DORMANT: LivingState.DORMANT,
}
STATE_VALUES = {state: value for value, state in STATES.items()}
CITATION_ROLES = {
    Role.SUPPORT: pb.CITATION_ROLE_SUPPORT,
    Role.CONTRA: pb.CITATION_ROLE_CONTRA,
    Role.CONTEXT: pb.CITATION_ROLE_CONTEXT,
}
EVIDENCE_ROLES = {
    Role.SUPPORT: receipt_pb.EVIDENCE_ROLE_SUPPORT,
    Role.CONTRA: receipt_pb.EVIDENCE_ROLE_CONTRA,
    Role.CONTEXT: receipt_pb.EVIDENCE_ROLE_CONTEXT,
}
