"""Messages as the service words them: arguments are fields of a JSON body."""

from __future__ import annotations

import json
from collections.abc import Mapping

from discreet.core.errors import Dialect

# Templates that replace the default one over HTTP, by code.
TEMPLATES: Mapping[str, str] = {}


class OverHttp(Dialect):
    """Requests with JSON bodies."""

    def argument(self, name: str, value: str) -> str:
        """Return a field of the body, such as `"ignore_unknown": true`."""
        if not value:
            return f'"{name}"'
        try:
            shown = json.dumps(json.loads(value.lower() if value in ("True", "False") else value))
        except ValueError:
            shown = json.dumps(value)
        return f'"{name}": {shown}'


HTTP = OverHttp(TEMPLATES)
