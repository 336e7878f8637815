"""Commands, shared by both edges: validated, decided, then appended to the log, and only then read back."""
