"""A guard pipeline in Python: the cost of one decision with pydantic and jsonschema.

The pipeline follows the connectorguard document: an attempt, the registry, the
permissions, a sliding window of UTC timestamps, the JSON Schema of the input, a result and an audit
entry. The filter of groups and states of the tool-group document runs before the permissions.
Three variants are measured alternately in one run:

* as described: `jsonschema.validate`, which checks and compiles the schema on every call;
* cached validator: the same, with one `Draft202012Validator` for each connector;
* tuned: the cached validator, and tuples, sets and floats in place of models, lists and datetimes.

A round starts, untimed, from a full audit log and windows that hold 500 requests of the last minute.
Its calls cycle through the agents, so no window reaches its limit. Before the measurement every
variant must deny a call at each step, and every timed call must be allowed.

    pip install pydantic jsonschema
    python benches/guard_pipeline.py [--json]
"""

import argparse
import collections
import datetime
import importlib.metadata
import itertools
import json
import platform
import statistics
import threading
import time
from typing import Any, NamedTuple

import jsonschema
from jsonschema.exceptions import best_match
from pydantic import BaseModel, ConfigDict, Field, field_validator

ROUNDS = 7
ROUND_SECONDS = 0.5
CONNECTORS, AGENTS, HELD, LIMIT, WINDOW, AUDIT = 100, 100, 500, 1000, 60, 10_000
MOST_CALLS = AGENTS * (LIMIT - HELD) - AGENTS
PASSED = "all checks passed"

SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "mode": {"enum": ["fast", "exact", "deep"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "exact": {"type": "boolean"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
ARGUMENTS = {"query": "quarterly revenue", "limit": 20, "mode": "fast", "tags": ["a", "b"], "exact": True}
NEEDED = ["search:call", "search:read"]
HELD_PERMISSIONS = ["llm:call", "search:call", "search:read", "files:read"]
TOOL_GROUPS, TOOL_STATES = ["basic", "knowledge", "read-only"], ["undefined", "research"]
GROUPS, STATE = ["read-only", "knowledge"], "research"


def utc_now():
    return datetime.datetime.now(datetime.UTC)


def stripped(text, what):
    text = text.strip()
    if not text:
        raise ValueError(f"{what} must not be blank")
    return text


class ConnectorSchema(BaseModel):
    name: str
    version: str
    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)
    rate_limit: int = Field(default=60, ge=1)
    required_permissions: list[str] = Field(default_factory=list)
    group: list[str] | None = None
    available_in_states: list[str] | None = None

    @field_validator("name")
    @classmethod
    def name_is_not_blank(cls, text):
        return stripped(text, "connector name")

    @field_validator("version")
    @classmethod
    def version_is_not_blank(cls, text):
        return stripped(text, "version")


class ConnectionAttempt(BaseModel):
    connector_name: str
    timestamp: datetime.datetime = Field(default_factory=utc_now)
    input_data: dict[str, Any] = Field(default_factory=dict)
    source_agent: str = "unknown"
    group: list[str] | None = None
    state: str | None = None

    @field_validator("connector_name")
    @classmethod
    def name_is_not_blank(cls, text):
        return stripped(text, "connector_name")


class ConnectionResult(BaseModel):
    allowed: bool
    reason: str = ""
    latency_ms: float = Field(default=0.0, ge=0)


class AuditEntry(BaseModel):
    model_config = ConfigDict(frozen=True)

    connection_attempt: ConnectionAttempt
    result: ConnectionResult
    timestamp: datetime.datetime = Field(default_factory=utc_now)


class RegistryError(Exception):
    pass


class ConnectorRegistry:
    def __init__(self):
        self.lock = threading.Lock()
        self.schemas = {}

    def register(self, schema):
        with self.lock:
            self.schemas[schema.name] = schema

    def get(self, name):
        with self.lock:
            if name not in self.schemas:
                raise RegistryError(f"connector '{name}' is not registered")
            return self.schemas[name]


class SlidingWindow:
    """The timestamps of the requests of each key; the clock and the length of the window are given."""

    def __init__(self, now, length):
        self.now, self.length = now, length
        self.lock = threading.Lock()
        self.windows = {}

    def admit(self, key, limit):
        with self.lock:
            now = self.now()
            window = self.windows.setdefault(key, collections.deque())
            cutoff = now - self.length
            while window and window[0] < cutoff:
                window.popleft()
            if len(window) >= limit:
                return False
            window.append(now)
            return True


class AuditLog:
    """A bounded deque evicts in constant time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entries = collections.deque(maxlen=AUDIT)

    def append(self, entry):
        with self.lock:
            self.entries.append(entry)


class AsDescribed:
    """The pipeline of the document, and the interceptor's call that audits it."""

    name = "as described: pydantic, `jsonschema.validate`"

    def __init__(self):
        self.registry = ConnectorRegistry()
        self.limiter = SlidingWindow(utc_now, datetime.timedelta(seconds=WINDOW))
        self.log = AuditLog()
        self.lock = threading.Lock()
        self.permissions = {}

    def register(self, **fields):
        self.registry.register(ConnectorSchema(version="1.0.0", **fields))

    def grant(self, agent, permissions):
        with self.lock:
            self.permissions.setdefault(agent, []).extend(permissions)

    def intercept(self, connector, data, agent, group=None, state=None):
        attempt = ConnectionAttempt(
            connector_name=connector, input_data=data, source_agent=agent, group=group, state=state
        )
        start = time.monotonic()
        reason = self.judge(attempt)
        latency = round((time.monotonic() - start) * 1000, 3)
        result = ConnectionResult(allowed=reason == PASSED, reason=reason, latency_ms=latency)
        self.log.append(AuditEntry(connection_attempt=attempt, result=result))
        return result

    def judge(self, attempt):
        """Why the attempt is denied, or PASSED."""
        name, agent = attempt.connector_name, attempt.source_agent
        try:
            connector = self.registry.get(name)
        except RegistryError as error:
            return str(error)
        if not self.available(connector, attempt):
            return f"connector '{name}' is not available in the groups and the state of the request"
        with self.lock:
            held = set(self.permissions.get(agent, ()))
        missing = sorted(set(connector.required_permissions) - held)
        if missing:
            return f"agent '{agent}' is missing required permissions: {', '.join(missing)}"
        if not self.limiter.admit(f"{name}:{agent}", connector.rate_limit):
            return f"rate limit exceeded for connector '{name}' (limit: {connector.rate_limit} req/{WINDOW}s)"
        error = self.input_error(connector, attempt.input_data) if connector.input_schema else None
        return f"input validation failed: {error}" if error else PASSED

    @staticmethod
    def available(connector, attempt):
        tool_groups = ["default"] if connector.group is None else connector.group
        tool_states = ["*"] if connector.available_in_states is None else connector.available_in_states
        groups = ["default"] if attempt.group is None else attempt.group
        state = "undefined" if attempt.state is None else attempt.state
        in_group = bool(set(tool_groups) & set(groups)) or "*" in groups
        return in_group and (state in tool_states or "*" in tool_states)

    def input_error(self, connector, data):
        try:
            jsonschema.validate(data, connector.input_schema)
        except jsonschema.ValidationError as error:
            return error.message
        except jsonschema.SchemaError as error:
            return f"invalid connector schema definition: {error.message}"
        return None

    def fill(self, agents, connector):
        """Fills windows and log to their state after a minute of work."""
        now = self.limiter.now()
        for agent in agents:
            window = (now - self.limiter.length * (HELD - index) / HELD for index in range(HELD))
            self.limiter.windows[f"{connector}:{agent}"] = collections.deque(window)
        for agent in itertools.islice(itertools.cycle(agents), AUDIT):
            attempt = ConnectionAttempt(connector_name=connector, input_data=ARGUMENTS, source_agent=agent)
            result = ConnectionResult(allowed=True, reason=PASSED)
            self.log.append(AuditEntry(connection_attempt=attempt, result=result))


class CachedValidator(AsDescribed):
    name = "pydantic, cached `Draft202012Validator`"

    def __init__(self):
        super().__init__()
        self.validators = {}

    def register(self, **fields):
        super().register(**fields)
        jsonschema.Draft202012Validator.check_schema(fields["input_schema"])
        self.validators[fields["name"]] = jsonschema.Draft202012Validator(fields["input_schema"])

    def input_error(self, connector, data):
        error = best_match(self.validators[connector.name].iter_errors(data))
        return error and error.message


class Connector(NamedTuple):
    rate_limit: int
    permissions: frozenset
    groups: frozenset
    states: frozenset
    validator: Any


class Verdict(NamedTuple):
    allowed: bool
    reason: str
    latency_ms: float


class Tuned:
    name = "tuned: no pydantic, cached `Draft202012Validator`"

    def __init__(self):
        self.connectors, self.permissions = {}, {}  # Reading a dict needs no lock.
        self.limiter = SlidingWindow(time.time, WINDOW)
        self.log = AuditLog()

    def register(self, name, input_schema, rate_limit, required_permissions, group, available_in_states):
        jsonschema.Draft202012Validator.check_schema(input_schema)
        validator = jsonschema.Draft202012Validator(input_schema)
        sets = map(frozenset, (required_permissions, group, available_in_states))
        self.connectors[name] = Connector(rate_limit, *sets, validator)

    def grant(self, agent, permissions):
        self.permissions[agent] = self.permissions.get(agent, frozenset()) | set(permissions)

    def intercept(self, name, data, agent, group=("default",), state="undefined"):
        attempted, start = time.time(), time.monotonic()
        reason = self.judge(name, data, agent, group, state)
        verdict = Verdict(reason is PASSED, reason, (time.monotonic() - start) * 1000)
        self.log.append((attempted, name, agent, data, group, state, verdict, time.time()))
        return verdict

    def judge(self, name, data, agent, group, state):
        connector = self.connectors.get(name)
        if connector is None:
            return f"connector '{name}' is not registered"
        in_group = not connector.groups.isdisjoint(group) or "*" in group
        if not in_group or not (state in connector.states or "*" in connector.states):
            return f"connector '{name}' is not available in the groups and the state of the request"
        held = self.permissions.get(agent, frozenset())
        if not connector.permissions <= held:
            missing = ", ".join(sorted(connector.permissions - held))
            return f"agent '{agent}' is missing required permissions: {missing}"
        if not self.limiter.admit((name, agent), connector.rate_limit):
            return f"rate limit exceeded for connector '{name}' (limit: {connector.rate_limit} req/{WINDOW}s)"
        error = best_match(connector.validator.iter_errors(data))
        return f"input validation failed: {error.message}" if error else PASSED

    def fill(self, agents, connector):
        now = self.limiter.now()
        for agent in agents:
            window = (now - WINDOW * (HELD - index) / HELD for index in range(HELD))
            self.limiter.windows[connector, agent] = collections.deque(window)
        for agent in itertools.islice(itertools.cycle(agents), AUDIT):
            verdict = Verdict(True, PASSED, 0.1)
            self.log.append((now, connector, agent, dict(ARGUMENTS), GROUPS, STATE, verdict, time.time()))


def must(held, what):
    if not held:
        raise SystemExit(f"guard_pipeline: {what}")


def guard(variant, agents):
    made = variant()
    for index in range(CONNECTORS):
        made.register(
            name=f"tool-{index}",
            input_schema=SCHEMA,
            rate_limit=1 if index == 0 else LIMIT,
            required_permissions=NEEDED,
            group=TOOL_GROUPS,
            available_in_states=TOOL_STATES,
        )
    for agent in agents:
        made.grant(agent, HELD_PERMISSIONS)
    return made


def check(variant):
    """Every step denies what it should, in the order of the steps, and all of it is audited."""
    made = guard(variant, ["a"])
    bad = {**ARGUMENTS, "limit": 101}
    calls = [
        (("tool-1", ARGUMENTS, "a", GROUPS, STATE), PASSED),
        (("nowhere", bad, "b", ["other"], STATE), "connector 'nowhere' is not registered"),
        (("tool-1", bad, "b", ["other"], STATE), "connector 'tool-1' is not available"),
        (("tool-1", bad, "b", [], STATE), "connector 'tool-1' is not available"),
        (("tool-1", bad, "b"), "connector 'tool-1' is not available"),
        (("tool-1", bad, "b", GROUPS, "analysis"), "connector 'tool-1' is not available"),
        (("tool-1", bad, "b", ["*"], STATE), "agent 'b' is missing required permissions: search:call, search:read"),
        (("tool-0", ARGUMENTS, "a", ["*"]), PASSED),
        (("tool-0", bad, "a", ["*"]), "rate limit exceeded for connector 'tool-0' (limit: 1 req/60s)"),
        (("tool-1", bad, "a", GROUPS, STATE), "input validation failed: 101 is greater than the maximum of 100"),
    ]
    for field, value in {"query": "", "mode": "slow", "tags": ["a"] * 6, "exact": "yes", "other": 1}.items():
        calls.append((("tool-1", {**ARGUMENTS, field: value}, "a", GROUPS, STATE), "input validation failed: "))
    calls.append((("tool-1", {}, "a", GROUPS, STATE), "input validation failed: 'query' is a required property"))
    for arguments, reason in calls:
        result = made.intercept(*arguments)
        must(result.reason.startswith(reason), f"{variant.name}: {result.reason!r}, not {reason!r}")
        must(result.allowed == (reason == PASSED), f"{variant.name}: allowed contradicts {result.reason!r}")
    must(len(made.log.entries) == len(calls), f"{variant.name}: not every call was audited")


def round_of(variant, calls):
    """Nanoseconds per call."""
    agents = [f"agent-{index}" for index in range(AGENTS)]
    made = guard(variant, agents)
    made.fill(agents, "tool-7")
    callers = list(itertools.islice(itertools.cycle(agents), calls))
    allowed, intercept = 0, made.intercept
    start = time.perf_counter_ns()
    for agent in callers:
        allowed += intercept("tool-7", ARGUMENTS, agent, GROUPS, STATE).allowed
    spent = time.perf_counter_ns() - start
    must(allowed == calls, f"{variant.name}: {calls - allowed} calls were denied")
    must(len(made.log.entries) == AUDIT, f"{variant.name}: the log is not full")
    return spent / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    as_json = parser.parse_args().json
    variants = [AsDescribed, CachedValidator, Tuned]
    calls = {}
    for variant in variants:
        check(variant)
        calls[variant] = min(MOST_CALLS, max(AGENTS, int(ROUND_SECONDS * 1e9 / round_of(variant, AGENTS))))
    times = {variant: [] for variant in variants}
    for _ in range(ROUNDS):
        for variant in variants:
            times[variant].append(round_of(variant, calls[variant]))
    told = {
        "variants": [
            {
                "name": variant.name,
                "ns_per_call": round(statistics.median(times[variant])),
                "fastest": round(min(times[variant])),
                "slowest": round(max(times[variant])),
                "allowed": calls[variant] * ROUNDS,
            }
            for variant in variants
        ],
        "python": platform.python_version(),
        "pydantic": importlib.metadata.version("pydantic"),
        "jsonschema": importlib.metadata.version("jsonschema"),
        "setup": f"{ROUNDS} rounds in turns; the calls of a round go round {AGENTS} agents, whose windows start with "
        f"{HELD} requests of the last {WINDOW} s and are limited to {LIMIT}; {CONNECTORS} connectors are registered; "
        f"the audit log is full ({AUDIT} entries)",
    }
    if as_json:
        print(json.dumps(told, indent=2))
        return
    print(f"Python {told['python']}, pydantic {told['pydantic']}, jsonschema {told['jsonschema']}; {told['setup']}.\n")
    print("| pipeline | median, µs | fastest | slowest | decisions/s | calls, all allowed |\n|---|---|---|---|---|---|")
    for row in told["variants"]:
        micros = " | ".join(f"{row[key] / 1e3:.1f}" for key in ("ns_per_call", "fastest", "slowest"))
        print(f"| {row['name']} | {micros} | {1e9 / row['ns_per_call']:.0f} | {row['allowed']} |")


if __name__ == "__main__":
    main()
