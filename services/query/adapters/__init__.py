"""Adapters of the query service, one file per technology."""
