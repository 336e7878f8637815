"""Pure values and decisions of the index service."""
