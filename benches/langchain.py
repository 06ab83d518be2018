"""Converting to OpenAI tools: our command compared with langchain-core, in one run.

Our command converts text to text, process start included. langchain-core also gets the input it is
made for: its own tool objects, built in advance, from a JSON Schema and from a Pydantic model.
"""

import importlib.metadata
import json
import pathlib
import subprocess
import tempfile
import time

from corpus import BINARY, definitions
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, create_model

TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def ours(texts):
    """The median rate of five runs, and the number of converted tools."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "all.jsonl")
        path.write_text("\n".join(texts))
        command = [BINARY, "canon", "emit", "--target", "openai", "--format", "jsonl", str(path)]
        times = []
        for _ in range(5):
            start = time.monotonic()
            out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            times.append(time.monotonic() - start)
    tools = [json.loads(line) for line in out.stdout.decode().splitlines()]
    return len(texts) / sorted(times)[2], tools


def theirs(inputs, convert):
    """The rate of one pass, and its output."""
    start, tools = time.monotonic(), []
    for value in inputs:
        try:
            tools.append(convert(value))
        except Exception:  # any exception means that the tool is not converted
            pass
    return len(inputs) / (time.monotonic() - start), tools


def structured(definition, schema):
    return StructuredTool(
        name=definition["name"], description=definition.get("description") or "-", args_schema=schema, func=print
    )


def model(definition):
    """A Pydantic model with the fields of the schema."""
    schema = definition["inputSchema"]
    fields = {}
    for name, value in schema.get("properties", {}).items():
        kind = TYPES.get(value.get("type"), object) if isinstance(value.get("type"), str) else object
        default = ... if name in schema.get("required", []) else None
        fields[name] = (kind, Field(default, description=value.get("description")))
    return create_model(definition["name"], **fields)


def row(what, rate, given, tools, base):
    bare = sum(1 for tool in tools if not (tool.get("function") or {}).get("parameters"))
    print(f"| {what} | {rate:.0f} | {given - len(tools)} | {bare} | {base / rate:.1f} |")


def main():
    texts = definitions()
    version = importlib.metadata.version("langchain-core")
    print("| converter | definitions/s | not converted | without parameters | ours is faster by |\n|---|---|---|---|---|")
    base, tools = ours(texts)
    row("toolwarden canon emit, text to text", base, len(texts), tools, base)
    rate, tools = theirs(texts, lambda text: json.loads(json.dumps(convert_to_openai_tool(json.loads(text)))))
    row(f"langchain-core {version}, text to text", rate, len(texts), tools, base)
    sample = [json.loads(text) for text in texts[:4000:4]]
    objects = [structured(definition, definition["inputSchema"]) for definition in sample]
    rate, tools = theirs(objects, convert_to_openai_tool)
    row("its tool objects with a JSON Schema", rate, len(objects), tools, base)
    objects = []
    for definition in sample:
        try:
            objects.append(structured(definition, model(definition)))
        except Exception:  # not every name is a valid field
            continue
    rate, tools = theirs(objects, convert_to_openai_tool)
    row("its tool objects with a Pydantic model", rate, len(objects), tools, base)


main()
