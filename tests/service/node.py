"""Ask node about the device's JavaScript."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

NODE = shutil.which("node")
WEB = Path(str(files("discreet.service"))) / "web"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed; `make browser` brings it")


def ask(*questions):
    """Return the answers of the device's modules to several questions."""
    told = subprocess.run(
        [NODE, str(Path(__file__).parent / "device_answers.mjs"), str(WEB / "device" / "device.js")],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)
