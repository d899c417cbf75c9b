"""Keep reports so that an acknowledged one is never lost: a SQLite file, or PostgreSQL."""
