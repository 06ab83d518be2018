"""An MCP server over standard streams whose tools stand in a file, so that a test can change them."""

import json
import sys

FOLDER = sys.argv[1]


def answer(request):
    method = request["method"]
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tools", "version": "1"},
        }
    if method == "tools/list":
        with open(FOLDER + "/tools.json", encoding="utf-8") as file:
            return {"tools": json.load(file)}
    if method == "tools/call":
        with open(FOLDER + "/result.json", encoding="utf-8") as file:
            return {"content": [], "structuredContent": json.load(file)}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
