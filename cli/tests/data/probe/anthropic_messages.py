"""Asks a server with the official client, and prints what the client read."""

import json
import sys

from anthropic import Anthropic

# The client puts the version into the path itself.
base_url = sys.argv[1].removesuffix("/v1")
client = Anthropic(base_url=base_url, api_key="none", max_retries=0)
QUESTION = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "How is the weather?"}],
}


def told(message):
    calls = [[it.id, it.name, it.input] for it in message.content if it.type == "tool_use"]
    return {
        "model": message.model,
        "finish": message.stop_reason,
        "calls": calls,
        "tokens": [message.usage.input_tokens, message.usage.output_tokens],
    }


def of_events(events):
    message, pieces = None, {}
    for event in events:
        if event.type == "message_start":
            message = event.message
        elif event.type == "content_block_start":
            message.content.append(event.content_block)
        elif event.type == "content_block_delta":
            pieces[event.index] = pieces.get(event.index, "") + event.delta.partial_json
        elif event.type == "content_block_stop":
            message.content[event.index].input = json.loads(pieces[event.index])
        elif event.type == "message_delta":
            message.stop_reason = event.delta.stop_reason
            message.usage.output_tokens = event.usage.output_tokens
    return told(message)


read = {
    "whole": told(client.messages.create(**QUESTION)),
    "stream": of_events(client.messages.create(**QUESTION, stream=True)),
}
with client.messages.stream(**QUESTION) as stream:
    read["helper"] = told(stream.get_final_message())
print(json.dumps(read))
