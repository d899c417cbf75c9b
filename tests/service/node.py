"""Ask node about the device's JavaScript."""

import base64
import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

NODE = shutil.which("node")
WEB = Path(str(files("discreet.service"))) / "web"
BUNDLED = Path(str(files("discreet.export.bundle"))) / "web"
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed; `make browser` brings it")


def ask(*questions):
    """Return the answers of the device's modules to several questions."""
    told = subprocess.run(
        [NODE, str(Path(__file__).parent / "device_answers.mjs"), str(WEB / "device" / "device.js")],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


_LISTS = """
import { readFileSync } from "node:fs";
const { Recommender } = await import(process.argv[1]);
const { model, items, questions } = JSON.parse(readFileSync(0, "utf8"));
const { buffer } = Uint8Array.from(Buffer.from(model, "base64"));
const recommender = new Recommender({ model: buffer, items: { ids: items } });
const lists = questions.map(({ history, options }) => recommender.recommend(history, options));
process.stdout.write(JSON.stringify(lists));
"""


def device_lists(model, ids, questions):
    """Return the lists that a bundle's program makes of a model's file: [(history, options), ...]."""
    asked = json.dumps(
        {
            "model": base64.b64encode(model).decode(),
            "items": ids,
            "questions": [{"history": history, "options": options} for history, options in questions],
        }
    )
    return json.loads(run_module(_LISTS, (BUNDLED / "shared" / "recommender.js").as_uri(), given=asked))


def run_module(text, *arguments, given=""):
    """Run a JavaScript module with node, and return what it wrote."""
    command = [NODE, "--input-type=module", "-e", text, *map(str, arguments)]
    told = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=300)
    assert told.returncode == 0, told.stderr
    return told.stdout
