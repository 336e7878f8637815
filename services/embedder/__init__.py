"""The embedder service: chunk texts in, unit vectors out, each computed once in a document's history."""
