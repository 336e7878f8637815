"""The proposition service: chunks turned into graded statements, where a crate asks for that."""
