"""The definitions of the corpus, for the benchmarks that are not written in Rust."""

import json
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("TOOLWARDEN_SHARED", ROOT.parent / "shared"))
BINARY = ROOT / "target" / "dist" / "toolwarden"


def definitions():
    """Every definition, as a compact JSON text."""
    corpus = SHARED / "corpus"
    folders = [corpus / "mcp"] + sorted(path for path in (corpus / "other").iterdir() if path.name != "tool_calls")
    texts = []
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            for entry in json.loads(path.read_text())["tools"]:
                definition = entry.get("tool", entry)
                texts.append(json.dumps(definition, separators=(",", ":"), ensure_ascii=False))
    return texts
