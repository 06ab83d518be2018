"""Asks a server with the official client, and prints what the client read."""

import json
import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
QUESTION = {
    "model": "gpt-5-mini",
    "messages": [{"role": "user", "content": "How is the weather?"}],
}


def told(model, finish, calls, usage):
    return {
        "model": model,
        "finish": finish,
        "calls": calls,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
    }


def of_completion(completion):
    choice = completion.choices[0]
    calls = [
        [it.id, it.function.name, it.function.arguments]
        for it in choice.message.tool_calls
    ]
    return told(completion.model, choice.finish_reason, calls, completion.usage)


def of_chunks(chunks):
    calls, finish, model, usage = [], None, None, None
    for chunk in chunks:
        model = chunk.model
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for it in choice.delta.tool_calls or []:
                if it.index == len(calls):
                    calls.append([it.id, it.function.name, ""])
                calls[it.index][2] += it.function.arguments or ""
    return told(model, finish, calls, usage)


options = {"include_usage": True}
whole = client.chat.completions.create(**QUESTION)
chunks = client.chat.completions.create(**QUESTION, stream=True, stream_options=options)
read = {"whole": of_completion(whole), "stream": of_chunks(chunks)}
with client.chat.completions.stream(**QUESTION, stream_options=options) as stream:
    read["helper"] = of_completion(stream.get_final_completion())
print(json.dumps(read))
