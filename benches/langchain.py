"""From definition text to OpenAI tool text: our command beside langchain-core, same file, same run."""

import importlib.metadata
import json
import pathlib
import subprocess
import tempfile
import time

from corpus import BINARY, definitions
from langchain_core.utils.function_calling import convert_to_openai_tool


def main():
    texts = definitions()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "all.jsonl")
        path.write_text("\n".join(texts))
        ours = []
        for _ in range(5):
            start = time.monotonic()
            command = [BINARY, "canon", "emit", "--target", "openai", "--format", "jsonl", str(path)]
            out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            ours.append(time.monotonic() - start)
        emitted = [json.loads(line) for line in out.stdout.decode().splitlines()]
    start = time.monotonic()
    theirs, failed = [], 0
    for text in texts:
        try:
            theirs.append(json.dumps(convert_to_openai_tool(json.loads(text))))
        except Exception:  # whatever it raises, the tool is not converted
            failed += 1
    seconds = time.monotonic() - start
    bare = sum(1 for text in theirs if not (json.loads(text).get("function") or {}).get("parameters"))
    our_bare = sum(1 for tool in emitted if not tool["function"].get("parameters"))
    version = importlib.metadata.version("langchain-core")
    fastest = sorted(ours)[len(ours) // 2]
    rate, their_rate = len(texts) / fastest, len(texts) / seconds
    print(f"| converter | definitions/s | refused | without parameters |\n|---|---|---|---|")
    print(f"| toolwarden canon emit (process start included) | {rate:.0f} | {len(texts) - len(emitted)} | {our_bare} |")
    print(f"| langchain-core {version} convert_to_openai_tool | {their_rate:.0f} | {failed} | {bare} |")
    print(f"\nratio: {rate / their_rate:.0f}")


main()
