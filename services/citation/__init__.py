"""The citation service: every marker in one form, none that names no source."""
