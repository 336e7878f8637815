"""Adapters of citation."""
