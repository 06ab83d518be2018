"""An MCP server on standard streams that does to a call what the name of the tool says."""
import json, os, sys, time

NAMES = ["t", "die", "hang", "noise", "cut", "huge", "drip"]
OUT = sys.stdout.buffer


def write(data):
    OUT.write(data)
    OUT.flush()


def answer(id, result):
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n"


for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message["method"]
    if id is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        write(answer(id, {"protocolVersion": version, "capabilities": {"tools": {}},
                          "serverInfo": {"name": "faulty", "version": "1"}}))
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
        write(answer(id, {"tools": tools}))
    elif method == "tools/call":
        name = message["params"]["name"]
        whole = answer(id, {"content": [{"type": "text", "text": name}]})
        if name == "die":
            print("cannot go on with", os.environ.get("TOKEN"), file=sys.stderr)
            sys.exit(3)
        elif name == "hang":
            time.sleep(3600)
        elif name == "noise":
            write(b"\xff\xfe not json\n\n[1,2\n{}\n" + whole)
        elif name == "cut":
            write(whole[:20] + b"\n")
        elif name == "huge":
            chunk = b"a" * (1 << 20)
            write(whole[:-4] + b'"')
            try:
                for _ in range(100):
                    write(chunk)
            except OSError:
                sys.exit(4)
            write(b"\n")
        elif name == "drip":
            for byte in whole:
                write(bytes([byte]))
                time.sleep(0.2)
        else:
            write(whole)
    else:
        error = {"code": -32601, "message": "unknown"}
        write(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode() + b"\n")
