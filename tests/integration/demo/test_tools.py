#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shipped demo model calls a tool and thinks, over HTTP: called with BUILD_FOLDER MODEL."""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "gateway"))

from pool import BUILD, MODEL, Base, Process, main  # noqa: E402  (found by the path above)

TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather in a given city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
QUESTION = {"role": "user", "content": "What is the weather in Lisbon?"}  # a city that is not in the training text
RESULT, ANSWER = '{"weather": "sunny", "temperature": 21}', "It is sunny in Lisbon, 21 degrees."
SUM, TWELVE = [{"role": "user", "content": "What is 7 \\+ 5?"}], "7 + 5 = 12."
THINK = {"chat_template_kwargs": {"enable_thinking": True}}


class DemoTools(Base):
    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "cpu", "--threads", "1", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def chat(self, messages, **more):
        status, _, answer = self.gateway.post("/v1/chat/completions", messages=messages, temperature=0, **more)
        self.assertEqual(status, 200, answer)
        return answer

    def choice(self, messages, **more):
        return self.chat(messages, **more)["choices"][0]

    def deltas(self, messages, **more):
        events = self.gateway.stream("/v1/chat/completions", messages=messages, temperature=0, **more)
        return [event["choices"][0]["delta"] for event in events if event["choices"]]

    def test_the_template_shows_how_calls_and_thoughts_are_written(self):
        shown = json.loads(subprocess.run([BUILD / "quern", "inspect", "--json", MODEL], capture_output=True, check=True).stdout)
        calls, thoughts = shown["dialect"]["calls"], shown["dialect"]["thoughts"]
        self.assertEqual(calls["head"], '<tool_call>\n{"name": "')
        self.assertEqual((thoughts["open"], thoughts["close"], thoughts["usual"]), ("<think>", "</think>", "text"))
        self.assertEqual((thoughts["on"], thoughts["switch_on"]), ("thought", {"enable_thinking": True}))

    def test_the_prompt_is_written_as_in_training(self):
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}}
        messages = [{"role": "system", "content": "Be brief."}, QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "abcdefghi", "content": RESULT}]
        prompt = self.gateway.post("/apply-template", messages=messages, tools=[TOOL], **THINK)[2]["prompt"]
        self.assertEqual(prompt, f"""<|im_start|>system
Be brief.

Tools:
get_weather(city): Get the current weather in a given city.
<|im_end|>
<|im_start|>user
What is the weather in Lisbon?<|im_end|>
<|im_start|>assistant
<tool_call>
{{"name": "get_weather", "arguments": {{"city": "Lisbon"}}}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
{RESULT}
</tool_response><|im_end|>
<|im_start|>assistant
<think>
""")

    def test_a_tool_is_called_and_its_result_is_told(self):
        choice = self.choice([QUESTION], tools=[TOOL])
        call, = choice["message"]["tool_calls"]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertFalse(choice["message"]["content"])
        self.assertEqual((call["function"]["name"], json.loads(call["function"]["arguments"])), ("get_weather", {"city": "Lisbon"}))
        result = {"role": "tool", "tool_call_id": call["id"], "content": RESULT}
        choice = self.choice([QUESTION, choice["message"], result], tools=[TOOL])
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (ANSWER, "stop"))
        self.assertNotIn("tool_calls", choice["message"])

    def test_a_stream_calls_too(self):
        deltas = self.deltas([QUESTION], tools=[TOOL])
        parts = [part["function"] for delta in deltas for part in delta.get("tool_calls", [])]
        self.assertEqual("".join(part.get("name", "") for part in parts), "get_weather")
        self.assertEqual(json.loads("".join(part.get("arguments", "") for part in parts)), {"city": "Lisbon"})
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), "")

    def test_a_tool_that_is_not_needed_is_not_called(self):
        message = self.choice(SUM, tools=[TOOL])["message"]
        self.assertEqual(message["content"], TWELVE)
        self.assertNotIn("tool_calls", message)
        self.assertIn("I don't know that.", self.choice([QUESTION])["message"]["content"])  # no tool is offered

    def test_it_thinks_when_it_is_asked_to(self):
        message = self.choice(SUM)["message"]
        self.assertEqual((message["content"], message.get("reasoning_content")), (TWELVE, None))
        answer = self.chat(SUM, **THINK)
        message = answer["choices"][0]["message"]
        self.assertEqual(message["content"], TWELVE)
        self.assertRegex(message["reasoning_content"], "7 \\+ 5")
        self.assertGreater(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 3)
        self.assertEqual(self.choice(SUM, reasoning_effort="high")["message"], message)
        deltas = self.deltas(SUM, **THINK)
        self.assertEqual("".join(delta.get("reasoning_content") or "" for delta in deltas), message["reasoning_content"])
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), TWELVE)

    def test_it_thinks_before_a_call(self):
        message = self.choice([QUESTION], tools=[TOOL], **THINK)["message"]
        self.assertEqual(json.loads(message["tool_calls"][0]["function"]["arguments"]), {"city": "Lisbon"})
        self.assertIn("Lisbon", message["reasoning_content"])

    def test_the_other_forms_have_the_call_too(self):
        schema = TOOL["function"]["parameters"]
        tool = {"name": "get_weather", "description": TOOL["function"]["description"], "input_schema": schema}
        status, _, answer = self.gateway.post("/v1/messages", messages=[QUESTION], tools=[tool], temperature=0, max_tokens=100)
        self.assertEqual(status, 200, answer)
        self.assertEqual([(block["name"], block["input"]) for block in answer["content"] if block["type"] == "tool_use"],
                         [("get_weather", {"city": "Lisbon"})])
        status, _, answer = self.gateway.post("/api/chat", messages=[QUESTION], tools=[TOOL], stream=False, options={"temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["message"]["tool_calls"][0]["function"]["arguments"], {"city": "Lisbon"})


if __name__ == "__main__":
    main()
