"""An MCP server that floods its client with what the name of the tool says.

`flood.py stdio` talks on standard streams. `flood.py http` listens on a free port and prints it."""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat

MEGABYTE = b"a" * 1_000_000


def answer(id, result):
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def note(size):
    params = {"level": "info", "data": "a" * size}
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    return json.dumps(message).encode()


def line(id, parts):
    """The parts of an answer whose text has these parts."""
    start, end = answer(id, {"content": [{"type": "text", "text": "|"}]}).split(b"|")
    return chain([start], parts, [end])


# What is sent, in parts; `before` and `after` go around each message.
FLOODS = {
    "line": lambda id, before, after: line(id, repeat(MEGABYTE, 100)),
    "endless": lambda id, before, after: line(id, repeat(MEGABYTE)),
    "event": lambda id, before, after: chain([before], line(id, repeat(MEGABYTE, 100)), [after]),
    "unended": lambda id, before, after: repeat(before + MEGABYTE + b"\n"),
    "small": lambda id, before, after: repeat(before + note(1_000) + after),
    "large": lambda id, before, after: repeat(before + note(1_000_000) + after),
}
# These come as JSON over HTTP, the others as event streams.
JSON = ["line", "endless"]


def reply(message):
    """The answer to anything but a flood."""
    id, method = message["id"], message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return answer(id, {"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}},
                           "serverInfo": {"name": "flood", "version": "1"}})
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["calm", *FLOODS]]
        return answer(id, {"tools": tools})
    if method == "tools/call":
        return answer(id, {"content": []})
    error = {"code": -32601, "message": "unknown"}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()


def flood_of(message):
    if message["method"] == "tools/call":
        name = message["params"]["name"]
        return name, FLOODS.get(name)
    return None, None


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_error(405)

    def do_DELETE(self):
        self.send_error(405)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        name, flood = flood_of(message)
        self.send_response(200)
        if not flood:
            body = reply(message)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return self.wfile.write(body)
        self.send_header("Content-Type", "application/json" if name in JSON else "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for part in flood(message["id"], b"data: ", b"\n\n"):
                self.wfile.write(part)
        except OSError:
            pass  # The client has seen enough.

    def log_message(self, *_):
        pass


def talk():
    for text in sys.stdin:
        message = json.loads(text)
        if "id" not in message:
            continue
        _, flood = flood_of(message)
        parts = flood(message["id"], b"", b"\n") if flood else [reply(message)]
        for part in chain(parts, [b"\n"]):
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


if sys.argv[1] == "stdio":
    try:
        talk()
    except OSError:
        sys.exit(1)
else:
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    print(f"http://127.0.0.1:{site.server_address[1]}/mcp", flush=True)
    site.serve_forever()
