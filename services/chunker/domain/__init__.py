"""Pure rules of chunking."""
