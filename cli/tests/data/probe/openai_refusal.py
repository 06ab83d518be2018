"""Asks a server that refuses with the official client, and prints what the client says."""

import json
import sys

from openai import APIStatusError, OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
try:
    client.chat.completions.create(
        model="gpt-5-mini", messages=[{"role": "user", "content": "hi"}]
    )
except APIStatusError as error:
    told = {
        "error": type(error).__name__,
        "status": error.status_code,
        "message": error.body["message"],
    }
    print(json.dumps(told))
