"""Decisions of receipt, without any input or output."""
