"""Keep reports so that an acknowledged one is never lost: SQLite beside the service, or PostgreSQL."""
