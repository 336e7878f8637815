"""One file per technology: Postgres tables, packs, processes, NATS."""
