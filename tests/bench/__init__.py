"""Benchmarks: figures for the record, never assertions. `make bench`."""
