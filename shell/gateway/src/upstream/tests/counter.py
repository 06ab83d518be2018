"""A server of the handshake era that counts its calls; the name of the tool says what it does."""
import json, os, sys, time

MODE = sys.argv[1]
COUNT = 0


def write(message):
    sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
    sys.stdout.flush()


def call(name):
    global COUNT
    COUNT += 1
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a") as file:
            file.write(name + "\n")
    if name == "die":
        sys.exit(3)
    if name == "hang":
        time.sleep(1000)
    if name == "rest":
        time.sleep(0.4)
    if name == "work":
        time.sleep(5)
    return {"count": COUNT, "pid": os.getpid()}


if MODE == "crash":
    sys.exit("no database; password=hunter2")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = {"id": message["id"]}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {},
                            "serverInfo": {"name": "counter", "version": "1"},
                            "instructions": json.dumps(message["params"]["capabilities"])}
    elif message["method"] == "tools/call":
        answer["result"] = call(message["params"]["name"])
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    write(answer)
