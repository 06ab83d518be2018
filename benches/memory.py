"""Peak memory of the command on a file of 100,000 definitions, and of watch on a list of 50 MB."""

import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time

from corpus import BINARY, definitions

COUNT = 100_000
LIST_BYTES = 50_000_000


def write_inputs(folder):
    """Writes the files. Runs in a separate process, because a child starts with its parent's peak."""
    texts = definitions()
    mixed = [texts[index * 7919 % len(texts)] for index in range(COUNT)]
    pathlib.Path(folder, "100,000 in an array").write_text("[" + ",\n".join(mixed) + "]")
    pathlib.Path(folder, "100,000 lines").write_text("\n".join(mixed))
    pathlib.Path(folder, "10,000 lines").write_text("\n".join(mixed[: COUNT // 10]))


def write_list(path):
    """Writes one MCP list of about 50 MB, each tool with a unique name."""
    tools = [json.loads(text) for text in definitions()]
    tools = [tool for tool in tools if isinstance(tool.get("inputSchema"), dict)]
    texts, size = [], 0
    while size < LIST_BYTES:
        tool = dict(tools[len(texts) * 7919 % len(tools)])
        tool["name"] = f"{tool.get('name')}_{len(texts)}"
        texts.append(json.dumps(tool, separators=(",", ":"), ensure_ascii=False))
        size += len(texts[-1].encode()) + 1
    pathlib.Path(path).write_text('{"tools":[' + ",".join(texts) + "]}")


def in_a_process(target, argument):
    """Calls a function in a separate process."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=(argument,))
    process.start()
    process.join()


def watch_rows():
    """Prints the memory of `watch lock`, `check --lock` and `scan` for a long list, relative to the list."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tools.json")
        in_a_process(write_list, str(path))
        size = path.stat().st_size
        print("\n| command | file, MB | peak, MB | peak / file | s |\n|---|---|---|---|---|")
        lock = str(pathlib.Path(folder, "toolwarden.lock"))
        rows = (
            ("watch lock", ["lock", "--output", lock]),
            ("watch lock over the same lock file", ["lock", "--output", lock]),
            ("watch check --lock", ["check", "--lock", lock]),
            ("watch scan", ["scan"]),
        )
        for name, words in rows:
            memory, seconds = peak(["watch", *words, str(path)])
            print(
                f"| {name} | {size / 1e6:.0f} | {memory / 1e6:.0f} | {memory / size:.2f} "
                f"| {seconds:.1f} |"
            )


def peak(arguments):
    """Runs the command; returns its peak resident memory in bytes and its duration in seconds."""
    start = time.monotonic()
    with open(os.devnull, "w") as nowhere:
        child = subprocess.Popen([BINARY, *arguments], stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{arguments} failed")
    return usage.ru_maxrss * 1024, time.monotonic() - start


def main():
    with tempfile.TemporaryDirectory() as folder:
        in_a_process(write_inputs, folder)
        print("| command | input | file, MB | peak, MB | peak / file | MB/s |\n|---|---|---|---|---|---|")
        for words in (["canonicalize"], ["emit", "--target", "openai"]):
            for path in sorted(pathlib.Path(folder).iterdir()):
                memory, seconds = peak(["canon", *words, "--format", "jsonl", str(path)])
                size = path.stat().st_size
                print(
                    f"| {' '.join(words)} | {path.name} | {size / 1e6:.0f} | {memory / 1e6:.0f} "
                    f"| {memory / size:.2f} | {size / 1e6 / seconds:.0f} |"
                )
    watch_rows()


if __name__ == "__main__":
    main()
