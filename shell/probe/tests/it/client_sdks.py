"""Requests every reply of a catalogue with the real clients, and prints what each handed to its program.

Usage: client_sdks.py BASE_URL MANIFEST, where the manifest lists [id, mode, wire].
"""

import json
import sys
import warnings

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

warnings.simplefilter("ignore")
base, manifest = sys.argv[1], json.load(open(sys.argv[2]))
question = "What is the weather?"
messages = [{"role": "user", "content": question}]
model = "synthetic-1"
key = "an-unchecked-key"
schema = {"type": "object", "properties": {"location": {"type": "string"}}}
names = ["get_weather", "get_forecast"]
chat_tools = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
    for name in names
]
response_tools = [
    {"type": "function", "name": name, "description": name, "parameters": schema, "strict": False}
    for name in names
]
message_tools = [{"name": name, "description": name, "input_schema": schema} for name in names]


def handed(calls, text):
    return {"calls": [list(call) for call in calls], "text": text or ""}


def openai_chat(url, mode):
    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    asked = {"model": model, "messages": messages, "tools": chat_tools}
    if mode == "stream":
        with client.chat.completions.stream(**asked) as stream:
            reply = stream.get_final_completion()
    else:
        reply = client.chat.completions.create(**asked)
    message = reply.choices[0].message
    calls = [
        (call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []
    ]
    return handed(calls, message.content)


def openai_responses(url, mode):
    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    asked = {"model": model, "input": question, "tools": response_tools}
    if mode == "stream":
        with client.responses.stream(**asked) as stream:
            reply = stream.get_final_response()
    else:
        reply = client.responses.create(**asked)
    calls = [
        (item.call_id, item.name, item.arguments)
        for item in reply.output
        if item.type == "function_call"
    ]
    return handed(calls, reply.output_text)


def anthropic_messages(url, mode):
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    asked = {"model": model, "max_tokens": 100, "messages": messages, "tools": message_tools}
    if mode == "stream":
        with client.messages.stream(**asked) as stream:
            reply = stream.get_final_message()
    else:
        reply = client.messages.create(**asked)
    calls = [
        (block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"
    ]
    text = "".join(block.text for block in reply.content if block.type == "text")
    return handed(calls, text)


def langchain(chat, mode):
    if mode == "stream":
        reply = None
        for chunk in chat.stream(question):
            reply = chunk if reply is None else reply + chunk
    else:
        reply = chat.invoke(question)
    calls = [(call["id"], call["name"], call["args"]) for call in reply.tool_calls]
    return handed(calls, str(reply.text))


def langchain_openai(url, mode, responses=False):
    chat = ChatOpenAI(
        base_url=url, api_key=key, model=model, max_retries=0, use_responses_api=responses
    )
    return langchain(chat.bind_tools(chat_tools), mode)


def langchain_anthropic(url, mode):
    chat = ChatAnthropic(base_url=url, api_key=key, model=model, max_retries=0, max_tokens=100)
    return langchain(chat.bind_tools(message_tools), mode)


clients = {
    "openai-chat": {"openai-python": openai_chat, "langchain-openai": langchain_openai},
    "openai-responses": {
        "openai-python": openai_responses,
        "langchain-openai": lambda url, mode: langchain_openai(url, mode, True),
    },
    "anthropic": {
        "anthropic-python": anthropic_messages,
        "langchain-anthropic": langchain_anthropic,
    },
}
seen = {}
for entry, mode, wire in manifest:
    for name, client in clients.get(wire, {}).items():
        try:
            outcome = client(f"{base}/{entry}/{mode}", mode)
        except Exception as error:
            outcome = {"raises": type(error).__name__, "what": str(error)[:200]}
        seen[f"{name} {entry} {mode}"] = outcome
print(json.dumps(seen, default=repr))
