"""Receipt: one signed receipt per answer, linked to a chain per crate, and everything needed to check it."""
