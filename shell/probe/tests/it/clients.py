"""Sends requests to a replay with the official clients and prints the calls they see."""

import json
import sys

import anthropic
import openai
from google import genai

base = sys.argv[1]
question = "What is the weather?"
messages = [{"role": "user", "content": question}]
model = "synthetic-1"


def chat_calls(reply):
    calls = reply.choices[0].message.tool_calls
    return [[call.function.name, json.loads(call.function.arguments)] for call in calls]


def response_calls(reply):
    return [[item.name, json.loads(item.arguments)] for item in reply.output]


def message_calls(reply):
    return [[block.name, block.input] for block in reply.content]


def gemini_calls(replies):
    return [[call.name, call.args] for reply in replies for call in reply.function_calls]


def openai_chat(client):
    yield chat_calls(client.chat.completions.create(model=model, messages=messages))
    with client.chat.completions.stream(model=model, messages=messages) as stream:
        yield chat_calls(stream.get_final_completion())


def openai_responses(client):
    yield response_calls(client.responses.create(model=model, input=question))
    with client.responses.stream(model=model, input=question) as stream:
        yield response_calls(stream.get_final_response())


def anthropic_messages(client):
    asked = {"model": model, "max_tokens": 100, "messages": messages}
    yield message_calls(client.messages.create(**asked))
    with client.messages.stream(**asked) as stream:
        yield message_calls(stream.get_final_message())


def gemini(client):
    yield gemini_calls([client.models.generate_content(model=model, contents=question)])
    yield gemini_calls(client.models.generate_content_stream(model=model, contents=question))


key = "an-unchecked-key"
openai_client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
anthropic_client = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
gemini_client = genai.Client(api_key=key, http_options={"base_url": base})
print(
    json.dumps(
        {
            "openai-chat": list(openai_chat(openai_client)),
            "openai-responses": list(openai_responses(openai_client)),
            "anthropic": list(anthropic_messages(anthropic_client)),
            "gemini": list(gemini(gemini_client)),
        }
    )
)
