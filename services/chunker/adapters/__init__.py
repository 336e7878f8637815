"""Adapters of the chunker."""
