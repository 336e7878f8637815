"""Normalisers: the bytes of a document into text with structure, where every piece knows its place in the original."""

from services.ingest.domain.normalize.entry import normalize
from services.ingest.domain.normalize.model import Block, BlockKind, Form, InvalidDocument, Normalized, Run
from services.ingest.domain.normalize.origin import source_domain

__all__ = ["Block", "BlockKind", "Form", "InvalidDocument", "Normalized", "Run", "normalize", "source_domain"]
