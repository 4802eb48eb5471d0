"""Calls the simulated provider through the official OpenAI and Anthropic clients."""

import sys

import anthropic
import openai

base_url = sys.argv[1]
chat = openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0)
claude = anthropic.Anthropic(base_url=base_url.removesuffix("/v1"), api_key="unused", max_retries=0)
messages = [{"role": "user", "content": "hello there"}]


def expect(found, expected):
    if found != expected:
        raise SystemExit(f"expected {expected!r}, found {found!r}")


# Plain responses, with usage.
answer = chat.chat.completions.create(model="sim/echo", messages=messages)
expect(answer.choices[0].message.content, "hello there")
expect(answer.choices[0].finish_reason, "stop")
expect(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
message = claude.messages.create(model="sim/echo", max_tokens=100, messages=messages)
expect(message.content[0].text, "hello there")
expect(message.stop_reason, "end_turn")
expect(message.usage.output_tokens, answer.usage.completion_tokens)

# Streams.
pieces = chat.chat.completions.create(
    model="sim/echo", messages=messages, stream=True, stream_options={"include_usage": True}
)
pieces = list(pieces)
expect("".join(p.choices[0].delta.content or "" for p in pieces if p.choices), "hello there")
expect(pieces[-1].usage.completion_tokens, answer.usage.completion_tokens)
with claude.messages.stream(model="sim/echo", max_tokens=100, messages=messages) as stream:
    expect("".join(stream.text_stream), "hello there")
    expect(stream.get_final_message().usage.output_tokens, message.usage.output_tokens)

# Tools.
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
answer = chat.chat.completions.create(model="sim/tool", messages=messages, tools=[tool])
expect(answer.choices[0].message.tool_calls[0].function.name, "weather")
expect(answer.choices[0].finish_reason, "tool_calls")
tool = {"name": "weather", "description": "The weather.", "input_schema": schema}
message = claude.messages.create(model="sim/tool", max_tokens=100, messages=messages, tools=[tool])
call = next(block for block in message.content if block.type == "tool_use")
expect(call.name, "weather")
expect(type(call.input["city"]), str)
expect(message.stop_reason, "tool_use")

# Errors are the clients' own exceptions.
for client_error, make in [
    (openai.AuthenticationError, lambda: chat.chat.completions.create(model="sim/fault-401", messages=messages)),
    (openai.RateLimitError, lambda: chat.chat.completions.create(model="sim/fault-429", messages=messages)),
    (openai.InternalServerError, lambda: chat.chat.completions.create(model="sim/fault-500", messages=messages)),
    (anthropic.AuthenticationError, lambda: claude.messages.create(model="sim/fault-401", max_tokens=9, messages=messages)),
    (anthropic.RateLimitError, lambda: claude.messages.create(model="sim/fault-429", max_tokens=9, messages=messages)),
]:
    try:
        make()
    except client_error:
        pass
    else:
        raise SystemExit(f"expected {client_error.__name__}")

# The list of models.
expect(any(model.id == "sim/echo" for model in chat.models.list()), True)

print("ok")
