"""Write the golden fingerprints anew: only when a model changed on purpose, with the reason in CHANGELOG.md.

Run `PYTHONPATH=tests .venv/bin/python tests/golden/make.py`.
"""

import json
from pathlib import Path

from golden.cases import everything, machine

if __name__ == "__main__":
    found = {"machine": machine(), "arrays": everything()}
    lines = json.dumps(found).replace('], "', '],\n"')
    Path(__file__).with_name("arrays.json").write_text(lines + "\n", encoding="utf8")
