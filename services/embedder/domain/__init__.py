"""Pure values and decisions of the embedder service."""
