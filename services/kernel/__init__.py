"""Shared core of the services: log, packs, tables, RPC, running. It knows no document, chunk or answer."""
