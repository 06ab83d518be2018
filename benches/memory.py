"""Peak memory of the command on a file of 100,000 definitions."""

import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time

from corpus import BINARY, definitions

COUNT = 100_000


def write_inputs(folder):
    """Writes the files. In a process of its own: a child starts with its parent's peak."""
    texts = definitions()
    mixed = [texts[index * 7919 % len(texts)] for index in range(COUNT)]
    pathlib.Path(folder, "100,000 in an array").write_text("[" + ",\n".join(mixed) + "]")
    pathlib.Path(folder, "100,000 lines").write_text("\n".join(mixed))
    pathlib.Path(folder, "10,000 lines").write_text("\n".join(mixed[: COUNT // 10]))


def peak(arguments):
    """Runs the command; its peak resident memory in bytes and its seconds."""
    start = time.monotonic()
    with open(os.devnull, "w") as nowhere:
        child = subprocess.Popen([BINARY, *arguments], stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{arguments} failed")
    return usage.ru_maxrss * 1024, time.monotonic() - start


def main():
    with tempfile.TemporaryDirectory() as folder:
        writer = multiprocessing.get_context("spawn").Process(target=write_inputs, args=(folder,))
        writer.start()
        writer.join()
        print("| command | input | file, MB | peak, MB | peak / file | MB/s |\n|---|---|---|---|---|---|")
        for words in (["canonicalize"], ["emit", "--target", "openai"]):
            for path in sorted(pathlib.Path(folder).iterdir()):
                memory, seconds = peak(["canon", *words, "--format", "jsonl", str(path)])
                size = path.stat().st_size
                print(
                    f"| {' '.join(words)} | {path.name} | {size / 1e6:.0f} | {memory / 1e6:.0f} "
                    f"| {memory / size:.2f} | {size / 1e6 / seconds:.0f} |"
                )


if __name__ == "__main__":
    main()
