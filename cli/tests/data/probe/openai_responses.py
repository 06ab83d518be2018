"""Asks a server with the official client, and prints what the client read."""

import json
import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
QUESTION = {"model": "gpt-5-mini", "input": "How is the weather?"}


def told(response):
    calls = [[it.call_id, it.name, it.arguments] for it in response.output]
    return {
        "model": response.model,
        "finish": response.status,
        "calls": calls,
        "tokens": [response.usage.input_tokens, response.usage.output_tokens],
    }


whole = client.responses.create(**QUESTION)
pieces, final = {}, None
for event in client.responses.create(**QUESTION, stream=True):
    if event.type == "response.function_call_arguments.delta":
        pieces[event.output_index] = pieces.get(event.output_index, "") + event.delta
    if event.type == "response.completed":
        final = event.response
stream = told(final)
for index, arguments in pieces.items():
    stream["calls"][index][2] = arguments
print(json.dumps({"whole": told(whole), "stream": stream}))
