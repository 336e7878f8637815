"""Adapters of the embedder service, one file per technology."""
