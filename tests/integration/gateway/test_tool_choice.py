#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls of tools that are forced, or held to a schema: before a real pool, whose model has never seen a tool, at a
temperature at which it writes anything that it may. Each form in which models call has a pool of its own."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import pool
from pool import SCALED

SEEDS = 8 if SCALED else 50
FEW, SOME = (2, 5) if SCALED else (5, 20)
# What the pool takes for templates of these forms; the demo model makes nothing of it.
HEAD = "{{ tools | map(attribute='function') | map(attribute='name') | join(' ') if tools }}{% for m in messages %}{{ m.content or '' }}"
EACH = "{% for c in m.tool_calls or [] %}"
TAIL = "\n{% endfor %}{{ '>' if add_generation_prompt }}"
JSON = "{{ c.function.arguments | tojson }}"
TEMPLATES = {
    "hermes": HEAD + EACH + "{{ '\\n' if m.content or not loop.first }}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
              + JSON + "}\n</tool_call>{% endfor %}" + TAIL,
    "mistral": HEAD + "{% if m.tool_calls %}[TOOL_CALLS][" + EACH + "{\"name\": \"{{ c.function.name }}\", \"arguments\": " + JSON
               + "}{{ ', ' if not loop.last }}{% endfor %}]{% endif %}" + TAIL,
    "llama3": HEAD + "{% if m.tool_calls %}{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": "
              "{{ m.tool_calls[0].function.arguments | tojson }}}{% endif %}" + TAIL,
    "command-r": HEAD + "{% if m.tool_calls %}<|START_ACTION|>[" + EACH + "{\"tool_call_id\": \"{{ loop.index0 }}\", \"tool_name\": "
                 "\"{{ c.function.name }}\", \"parameters\": " + JSON + "}{{ ', ' if not loop.last }}{% endfor %}]<|END_ACTION|>{% endif %}" + TAIL,
    "members": HEAD + EACH + "\n<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
               "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"
               "{% endfor %}" + TAIL,
}
RAIN = {"type": "object", "required": ["town", "days"], "additionalProperties": False, "properties": {
    "town": {"enum": ["Ulm", "Bonn", "Köln"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7},
    "note": {"type": "string", "maxLength": 8}, "hours": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/hour"}}},
    "$defs": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}}}


def fits_rain(value):
    hours = value.get("hours", [])
    return (set(value) - {"note", "hours"} == {"town", "days"} and value["town"] in ("Ulm", "Bonn", "Köln")
            and type(value["days"]) is int and 1 <= value["days"] <= 7
            and isinstance(value.get("note", ""), str) and len(value.get("note", "")) <= 8
            and len(hours) <= 2 and all(type(hour) is int and 0 <= hour <= 23 for hour in hours))


FITS = {"rain.of-day": fits_rain, "time": lambda value: value == {},
        "say": lambda value: set(value) == {"aloud"} and type(value["aloud"]) is bool}


def tool(name, parameters=None, **more):
    function = {"name": name, **({"parameters": parameters} if parameters else {}), **more}
    return {"type": "function", "function": function}


SAY = {"type": "object", "properties": {"aloud": {"type": "boolean"}}, "required": ["aloud"]}
TOOLS = [tool("rain.of-day", RAIN), tool("time"), tool("say", SAY)]
ASK = {"messages": [{"role": "user", "content": "Does it rain?"}], "temperature": 2, "top_p": 1, "top_k": 0, "min_p": 0,
       "max_tokens": 900}
REQUIRED = {**ASK, "tools": TOOLS, "tool_choice": "required"}


class Forms:
    """Mixed into a class for each form."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-tc-"))
        cls.rundir = str(cls.folder / "run")
        (cls.folder / "template").write_text(TEMPLATES[cls.form])
        # One thread: on a busy machine several wait for one another more than they compute.
        cls.broker = pool.Process(cls.folder, "quern-broker", pool.MODEL, "--device", "cpu", "--threads", "1", "--chat-template",
                                  str(cls.folder / "template"), "--rundir", cls.rundir)
        cls.broker.says("ready:")
        cls.gateway = pool.Gateway(cls.folder, cls.rundir)
        cls.gateway.ready()

    @classmethod
    def tearDownClass(cls):
        try:
            assert cls.gateway.end() == 0, cls.gateway.log()
        finally:
            cls.broker.end()
            shutil.rmtree(cls.folder, ignore_errors=True)

    def answer(self, **request):
        status, _, answer = self.gateway.post("/v1/chat/completions", **request)
        self.assertEqual(status, 200, answer)
        return answer

    def calls(self, choice):
        """The names of the calls of a choice, each of which must be good."""
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        names = []
        for call in choice["message"]["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            self.assertTrue(FITS[name](arguments), call)
            names.append(name)
        self.assertEqual(len({call["id"] for call in choice["message"]["tool_calls"]}), len(names))
        return names

    def test_every_answer_is_a_call_of_a_tool_with_arguments_by_its_schema(self):
        seen = set()
        choices = self.answer(**REQUIRED, n=SEEDS, seed=1, parallel_tool_calls=False)["choices"]
        self.assertEqual(len(choices), SEEDS)
        for choice in choices:
            (name,) = self.calls(choice)
            seen.add((name, choice["message"]["tool_calls"][0]["function"]["arguments"]))
            self.assertIsNone(choice["message"]["content"])
        self.assertGreater(len(seen), SEEDS // (5 if self.form != "members" else 16))  # they differ: it is the model that chooses
        if not SCALED:  # of a few, all may be the same
            self.assertGreater(len({name for name, _ in seen}), 1)

    def test_several_calls_in_one_answer_where_that_is_not_forbidden(self):
        said = subprocess.run([str(pool.BUILD / "quern"), "inspect", "--json", pool.MODEL], capture_output=True, check=True)
        end = json.loads(said.stdout)["metadata"]["tokenizer.ggml.eos_token_id"]
        request = {**REQUIRED, "max_tokens": 100 if SCALED else 300, "logit_bias": {str(end): -100}}  # it ends where it must
        most, choices = 0, self.answer(**request, n=SEEDS // 4, seed=100)["choices"]
        for choice in choices:  # one that goes on for ever is cut off in a call
            cut = choice["finish_reason"] == "length"
            whole = choice["message"]["tool_calls"][:-1 if cut else None]
            choice = {**choice, "finish_reason": "tool_calls", "message": {**choice["message"], "tool_calls": whole}}
            most = max(most, len(self.calls(choice)))
        if self.form == "llama3":
            self.assertLessEqual(most, 1)
        elif not SCALED:
            self.assertGreater(most, 1)

    def test_a_named_tool_is_the_one_that_is_called(self):
        for name in FITS:
            choice = {"type": "function", "function": {"name": name}}
            for answer in self.answer(**{**REQUIRED, "tool_choice": choice}, n=FEW, seed=7)["choices"]:
                self.assertEqual(self.calls(answer), [name])
        allowed = {"mode": "required", "tools": [tool("say"), tool("time")]}
        choice = {"type": "allowed_tools", "allowed_tools": allowed}
        request = {**REQUIRED, "tool_choice": choice, "parallel_tool_calls": False}
        for answer in self.answer(**request, n=SOME, seed=11)["choices"]:
            self.assertIn(self.calls(answer), (["say"], ["time"]))

    def test_streamed_it_is_the_same(self):
        request = {**REQUIRED, "seed": 5, "parallel_tool_calls": False}
        (call,) = self.answer(**request)["choices"][0]["message"]["tool_calls"]
        deltas = [event["choices"][0] for event in self.gateway.stream("/v1/chat/completions", **request)]
        parts = [delta["delta"]["tool_calls"][0] for delta in deltas if "tool_calls" in delta["delta"]]
        self.assertEqual(parts[0]["function"], {"name": call["function"]["name"], "arguments": ""})
        self.assertEqual("".join(part["function"]["arguments"] for part in parts), call["function"]["arguments"])
        self.assertEqual(deltas[-1]["finish_reason"], "tool_calls")

    def test_anthropics_choices_are_the_same(self):
        tools = [{"name": "rain.of-day", "input_schema": RAIN}, {"name": "say", "input_schema": SAY}]
        request = {"messages": ASK["messages"], "max_tokens": 900, "temperature": 1, "top_k": 0, "top_p": 1, "tools": tools}
        for choice, names in (({"type": "any", "disable_parallel_tool_use": True}, {"rain.of-day", "say"}),
                              ({"type": "tool", "name": "say", "disable_parallel_tool_use": True}, {"say"})):
            for _ in range(FEW):
                status, _, answer = self.gateway.post("/v1/messages", **request, tool_choice=choice)
                self.assertEqual((status, answer["stop_reason"]), (200, "tool_use"), answer)
                (use,) = answer["content"]
                self.assertIn(use["name"], names)
                self.assertTrue(FITS[use["name"]](use["input"]), use)

    def test_a_strict_tool_is_held_to_its_schema_where_the_model_may_call(self):
        tools = [tool("rain.of-day", RAIN, strict=True), tool("say", SAY, strict=True)]
        request = {**ASK, "max_tokens": 60 if SCALED else 200, "tools": tools}
        for choice in self.answer(**request, n=SOME, seed=3)["choices"]:  # it does not come to a mark by chance
            self.assertNotEqual(choice["finish_reason"], "tool_calls")
            self.assertNotEqual(choice["message"]["content"].lstrip()[:1], "{" if self.form == "llama3" else None)
        if self.form == "llama3":  # but to a brace, where it likes braces
            (brace,) = {self.gateway.post("/tokenize", content=text)[2]["tokens"][-1] for text in ("{", "{{")}
            for choice in self.answer(**{**request, "max_tokens": 900}, n=SOME, seed=23, logit_bias={str(brace): 100})["choices"]:
                self.calls(choice)

    def test_beside_json_that_is_asked_for_a_call_is_possible_and_nothing_else(self):
        schema = {"type": "object", "properties": {"dry": {"type": "boolean"}}, "required": ["dry"]}
        asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        kinds = set()
        request = {**ASK, "parallel_tool_calls": False, "response_format": asked, "seed": 17}
        choices = self.answer(**request, tools=[tool("say", SAY, strict=True)], n=SEEDS)["choices"]
        # It does not come to a mark by chance, but where it likes the mark's first character.
        mark = {"hermes": "<", "mistral": "[", "llama3": "{", "command-r": "<", "members": "<"}[self.form]
        begins = {self.gateway.post("/tokenize", content=text)[2]["tokens"][-1] for text in (mark, mark * 2)}
        likes = {str(first): 8 for first in begins}
        choices += self.answer(**request, tools=[tool("say", SAY, strict=True)], n=SEEDS, logit_bias=likes)["choices"]
        for choice in choices:
            if choice["finish_reason"] == "tool_calls":
                self.calls(choice)
                kinds.add("call")
            else:
                self.assertIn(json.loads(choice["message"]["content"]), ({"dry": True}, {"dry": False}))
                kinds.add("json")
        self.assertEqual(kinds | ({"call"} if self.form == "llama3" else set()), {"json", "call"})  # both begin with a brace there
        for choice in self.answer(**{**REQUIRED, **request}, n=FEW)["choices"]:
            self.calls(choice)

    def test_what_cannot_be_held_to_is_refused_by_its_name(self):
        unique = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
        for fields, says in (
                ({"tools": [tool("odd", unique)], "tool_choice": "required"}, "arguments-0-odd"),
                ({"tools": [tool("odd", unique)], "tool_choice": "required"}, "uniqueItems is supported where"),
                ({"tools": [tool("odd", unique, strict=True)]}, "uniqueItems is supported where"),
                ({"tools": [tool("odd", {"type": "array"})], "tool_choice": "required"}, 'tools[0]: the schema of "odd"'),
                ({"tools": TOOLS, "tool_choice": "required", "regex": "a+"}, "not supported together with a grammar"),
                ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, 'is named "no"'),
                ({"tool_choice": "required"}, "the request has no tools")):
            status, _, answer = self.gateway.post("/v1/chat/completions", **ASK, **fields)
            self.assertEqual(status, 400, answer)
            self.assertIn(says, answer["error"]["message"])
        self.answer(**{**ASK, "max_tokens": 5}, tools=[tool("odd", unique)])  # nothing is promised of it

    def test_a_schema_that_is_too_wide_is_a_bad_request(self):
        wide = {"type": "object", "properties": {"a": {"enum": [f"value {i}" for i in range(5000)]}}, "required": ["a"]}
        status, _, answer = self.gateway.post("/v1/chat/completions", **ASK, tools=[tool("wide", wide)], tool_choice="required")
        self.assertEqual(status, 400, answer)
        self.assertIn("the grammar is too complex", answer["error"]["message"])


class Hermes(Forms, unittest.TestCase):
    form = "hermes"


class Mistral(Forms, unittest.TestCase):
    form = "mistral"


class Llama3(Forms, unittest.TestCase):
    form = "llama3"


class Members(Forms, unittest.TestCase):
    form = "members"


class CommandR(Forms, unittest.TestCase):
    form = "command-r"


if __name__ == "__main__":
    pool.main()
