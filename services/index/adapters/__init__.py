"""Adapters of the index service, one file per technology."""
