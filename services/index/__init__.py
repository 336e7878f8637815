"""The index service: two lanes, the tables, generations, living states."""
