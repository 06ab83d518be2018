"""An MCP server on standard streams that floods its client in the way the name of the tool says."""
import json, os, sys, time

NAMES = ["calm", "changes", "questions", "env", "hang"]
OUT = sys.stdout.buffer
PAGES = "pages" in sys.argv


def write(message):
    OUT.write(json.dumps(message).encode() + b"\n")


def answer(id, result):
    write({"jsonrpc": "2.0", "id": id, "result": result})


def flood(message, times):
    line = json.dumps(message).encode() + b"\n"
    try:
        for _ in range(times // 1000):
            OUT.write(line * 1000)
        OUT.flush()
    except OSError:
        sys.exit(4)


for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if id is None or method is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        answer(id, {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "hostile", "version": "1"}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
        if PAGES:
            cursor = int(message.get("params", {}).get("cursor", 0)) + 1
            tools = [{"name": "t%d" % cursor, "description": "x" * (1 << 20), "inputSchema": {"type": "object"}}]
            answer(id, {"tools": tools, "nextCursor": str(cursor)})
        else:
            answer(id, {"tools": tools})
    elif method == "tools/call":
        name = message["params"]["name"]
        text = name
        if name == "changes":
            flood({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, 1000000)
        elif name == "questions":
            flood({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage",
                   "params": {"messages": [], "maxTokens": 1}}, 300000)
        elif name == "env":
            text = json.dumps(sorted(os.environ))
        elif name == "hang":
            time.sleep(3600)
        answer(id, {"content": [{"type": "text", "text": text}]})
    else:
        write({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
    OUT.flush()
