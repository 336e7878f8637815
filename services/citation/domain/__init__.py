"""Pure rules of marker repair."""
