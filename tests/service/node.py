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


_LISTS = """
import { readFileSync } from "node:fs";
const { readVectors, recommend } = await import(process.argv[1]);
const { vectors, histories, k } = JSON.parse(readFileSync(0, "utf8"));
const model = readVectors(Uint8Array.from(Buffer.from(vectors, "hex")).buffer);
process.stdout.write(JSON.stringify(histories.map((one) => recommend(model, one, k))));
"""


def browser_lists(vectors, histories, k):
    """Return the lists that the page makes of these histories, each of [item's place, rating] pairs."""
    asked = json.dumps({"vectors": vectors.hex(), "histories": histories, "k": k})
    page = (WEB / "page" / "recommending.js").as_uri()
    command = [NODE, "--input-type=module", "-e", _LISTS, page]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=120)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)
