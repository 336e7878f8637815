"""Decisions of ingest, without any input or output."""
