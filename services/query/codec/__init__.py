"""Protobuf to domain and back. Pure."""
