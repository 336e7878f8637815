"""Ingest: crates, jobs, documents and their revisions; the pipeline's first step."""
