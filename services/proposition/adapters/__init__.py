"""Adapters of proposition."""
