"""Schema inclusion compared with the peers: verdicts, contradictions and time per pair.

For every pair, tests whether each value of `old` is a value of `new`; `format` is an annotation:

* ours: the example program `judge`, timed by itself;
* jsonsubschema: `isSubschema(old, new)`, which reads every schema as draft 4;
* jsoncompat: `analyze_compat(new, old, "serializer")`, the role that tests strict inclusion of
  its second argument in its first; it refuses drafts before 2020-12, so a second row removes `$schema`.

A peer runs in a worker process, which is warmed up by one call and replaced when a call exceeds
the timeout. The time is that of the call alone, over the calls that gave an answer. Every witness,
ours and the peers', is checked by python-jsonschema: it holds if `old` accepts it and `new` rejects
it. "Wrong" is an inclusion claimed against a label or a witness that holds, or a break claimed
against a label. "Disputed" is a break claimed without such a witness where ours proves inclusion.

    pip install jsonschema jsonsubschema==0.0.8 jsoncompat==0.5.0    # jsoncompat: Python 3.12 or later
    cargo build --profile dist --package toolwarden-schema --example judge
    python benches/schema_peers.py --judge target/dist/examples/judge --shared ../shared

A peer that is not installed is omitted.
"""

import argparse
import collections
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

INCLUDED, BREAKING, UNDECIDED, ERROR, TIMEOUT = "included", "breaking", "undecided", "error", "timeout"
OURS = "ours"
WARM_UP = ({"type": "object", "required": ["a"]}, {"type": "object"})
UNCHANGED = 500
COLUMNS = "engine|included|breaking|witnesses that hold|undecided|errors|timeouts|wrong|disputed|median|p99|max"


# Two schemas, their origin and, if labelled, the expected claim.
Pair = collections.namedtuple("Pair", "name old new label", defaults=[None])

# The answer of one engine for one pair; `witness` is a tuple of no value or one.
Answer = collections.namedtuple("Answer", "claim seconds witness note", defaults=[(), ""])


def labelled_pairs(shared):
    vectors = json.loads((shared / "acceptance/vectors/schema-pairs.json").read_text())
    return [Pair(v["id"], v["old"], v["new"], {"C": INCLUDED, "B": BREAKING}[v["truth"]]) for v in vectors]


def corpus_pairs(shared):
    """The distinct pairs of consecutive versions of one package: changed ones, unchanged ones."""
    packages = collections.defaultdict(list)
    for path in sorted((shared / "corpus/mcp").glob("*.json")):
        listing = json.loads(path.read_text())
        packages[listing["registry"], listing["server"]].append(listing)
    changed, unchanged = {}, {}
    for (_, package), versions in packages.items():
        versions.sort(key=lambda listing: version_key(listing["version"]))
        for before, after in zip(versions, versions[1:]):
            tools = {tool["name"]: tool for tool in before["tools"]}
            for tool in after["tools"]:
                for field in ("inputSchema", "outputSchema"):
                    old, new = tools.get(tool["name"], {}).get(field), tool.get(field)
                    if old is None or new is None:
                        continue
                    if field == "outputSchema":  # Callers rely on the old result schema: it must not widen.
                        old, new = new, old
                    name = f"{package}@{before['version']}..{after['version']} {tool['name']} {field}"
                    texts = json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True)
                    kind = unchanged if texts[0] == texts[1] else changed
                    kind.setdefault(texts, Pair(name, old, new))
    return list(changed.values()), list(unchanged.values())


def version_key(text):
    """Orders the versions of semver and of PEP 440: pre-release, release, post-release."""
    release, suffix = re.fullmatch(r"(\d+(?:\.\d+)*)(.*)", text).groups()
    words = re.findall(r"[a-z]+|\d+", suffix.split("+")[0].lower())
    phase = 0 if not words else 1 if words[0] == "post" else -1
    return [int(part) for part in release.split(".")], phase, [(0, int(w)) if w.isdigit() else (1, w) for w in words]


def spread(pairs, limit):
    """At most `limit` pairs, taken evenly."""
    count = min(len(pairs), limit or len(pairs))
    return [pairs[index * len(pairs) // count] for index in range(count)]


def ask_judge(program, pairs):
    sides = [WARM_UP] + [(pair.old, pair.new) for pair in pairs]
    lines = "".join(json.dumps({"old": old, "new": new}) + "\n" for old, new in sides)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    claims = {"equivalent": INCLUDED, "compatible": INCLUDED, "breaking": BREAKING, "unknown": UNDECIDED}
    answers = []
    for told in map(json.loads, done.stdout.splitlines()[1:]):
        witness = (told["witness"],) if "witness" in told else ()
        answers.append(Answer(claims[told["verdict"]], told["micros"] / 1e6, witness, told.get("reason", "")))
    return answers


def jsonsubschema(old, new):
    from jsonsubschema import isSubschema

    return lambda: (INCLUDED if isSubschema(old, new) else BREAKING, ())


def jsoncompat(old, new):
    from jsoncompat import analyze_compat

    texts = json.dumps(new), json.dumps(old)

    def ask():
        told = analyze_compat(*texts, "serializer")
        claim = {"compatible": INCLUDED, "incompatible": BREAKING, "unknown": UNDECIDED}[told["status"]]
        return claim, (told["counterexample"],) if "counterexample" in told else ()

    return ask


def without_draft(schema):
    return {key: part for key, part in schema.items() if key != "$schema"} if isinstance(schema, dict) else schema


# Each takes a pair and returns the call to time.
PEERS = {
    "jsonsubschema": jsonsubschema,
    "jsoncompat": jsoncompat,
    "jsoncompat, `$schema` removed": lambda old, new: jsoncompat(without_draft(old), without_draft(new)),
}


def work(peer, pipe):
    """The worker process: answers pairs until it is killed."""
    sys.stdout = open(os.devnull, "w")
    PEERS[peer](*WARM_UP)()
    pipe.send("ready")
    while True:
        ask = PEERS[peer](*pipe.recv())
        start = time.perf_counter()
        try:
            claim, witness = ask()
        except (Exception, SystemExit):
            claim, witness = ERROR, ()
        pipe.send(Answer(claim, time.perf_counter() - start, witness))


def ask_peer(peer, pairs, timeout):
    context = multiprocessing.get_context("spawn")
    process, answers = None, []
    for pair in pairs:
        if process is None:
            pipe, theirs = context.Pipe()
            process = context.Process(target=work, args=(peer, theirs), daemon=True)
            process.start()
            theirs.close()
            pipe.recv()
        pipe.send((pair.old, pair.new))
        try:
            answer = pipe.recv() if pipe.poll(timeout) else Answer(TIMEOUT, timeout)
            lost = answer.claim == TIMEOUT
        except EOFError:
            answer, lost = Answer(ERROR, 0.0), True
        answers.append(answer)
        if lost or len(answers) == len(pairs):
            process.kill()
            process.join()
            process = None
    return answers


def holds(pair, witness):
    """Whether python-jsonschema finds the witness valid under `old` and invalid under `new`."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    old, new = (validator_for(side, default=Draft202012Validator)(side) for side in (pair.old, pair.new))
    return old.is_valid(witness) and not new.is_valid(witness)


def fault_of(answer, truth, held, ours):
    """What needs an explanation in an answer, given which of its witnesses hold and our claim."""
    if truth and answer.claim in (INCLUDED, BREAKING) and answer.claim != truth:
        return "wrong"
    if answer.claim == BREAKING and not truth and ours == INCLUDED:
        return "disputed"
    return "false witness" if answer.witness != held else None


def report(title, pairs, answers):
    """Prints the table of one set of pairs; returns a line per answer that needs an explanation."""
    print(f"\n### {title}: {len(pairs)} pairs\n\n| {COLUMNS.replace('|', ' | ')} |\n|---{'|--:' * COLUMNS.count('|')}|")
    held = {e: [tuple(w for w in a.witness if holds(p, w)) for p, a in zip(pairs, answers[e])] for e in answers}
    proofs = [sum(each, ()) for each in zip(*held.values())]
    lines = [f"- ours, undecided: {p.name}: {a.note}" for p, a in zip(pairs, answers[OURS]) if a.claim == UNDECIDED]
    for engine, given in answers.items():
        faults = collections.Counter()
        for pair, answer, own, proof, ours in zip(pairs, given, held[engine], proofs, answers[OURS]):
            fault = fault_of(answer, pair.label or (BREAKING if proof else None), own, ours.claim)
            faults[fault] += 1
            if fault:
                shown = f"{answer.claim} {json.dumps(answer.witness)}, ours {ours.claim} {json.dumps(ours.witness)}"
                lines.append(f"- {engine}, {fault}: {pair.name}: {shown}")
        claims = collections.Counter(answer.claim for answer in given)
        cells = [engine, claims[INCLUDED], claims[BREAKING]]
        cells += [f"{sum(map(len, held[engine]))} of {sum(len(answer.witness) for answer in given)}"]
        cells += [claims[UNDECIDED], claims[ERROR], claims[TIMEOUT], faults["wrong"], faults["disputed"]]
        times = sorted(a.seconds for a in given if a.claim not in (ERROR, TIMEOUT)) or [math.nan]
        moments = statistics.median(times), times[math.ceil(len(times) * 0.99) - 1], times[-1]
        print("| " + " | ".join(map(str, cells + [f"{moment * 1e3:.3f} ms" for moment in moments])) + " |")
    print()
    for peer in (engine for engine in answers if engine != OURS):
        both = [(a, b) for a, b in zip(answers[OURS], answers[peer]) if b.claim not in (ERROR, TIMEOUT)]
        if both:
            mine, theirs = (statistics.median(answer.seconds for answer in side) for side in zip(*both))
            print(f"- over the {len(both)} pairs answered by {peer}, its median is {theirs / mine:.1f} times ours")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--judge", required=True, help="the program built from the example `judge`")
    parser.add_argument("--shared", required=True, type=pathlib.Path, help="the folder of acceptance/ and corpus/")
    parser.add_argument("--limit", type=int, help="at most this many pairs of each set, taken evenly")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds a peer has per pair")
    options = parser.parse_args()
    changed, unchanged = corpus_pairs(options.shared)
    sets = {
        "Labelled": labelled_pairs(options.shared),
        "Changed between consecutive versions": changed,
        "Unchanged between consecutive versions": spread(unchanged, UNCHANGED),
    }
    print(f"Load average at the start: {os.getloadavg()[0]:.2f} on {os.cpu_count()} processors.")
    lines = []
    installed = [peer for peer in PEERS if importlib.util.find_spec(peer.split(",")[0])]
    for title, pairs in sets.items():
        pairs = spread(pairs, options.limit)
        peers = {peer: ask_peer(peer, pairs, options.timeout) for peer in installed}
        lines += report(title, pairs, {OURS: ask_judge(options.judge, pairs)} | peers)
    print(f"\nLoad average at the end: {os.getloadavg()[0]:.2f}.\n\n### To explain\n")
    print("\n".join(lines) or "Nothing.")


if __name__ == "__main__":
    main()
