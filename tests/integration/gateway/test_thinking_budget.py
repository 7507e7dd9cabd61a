#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Budgets for thoughts, over every API, on the demo model with templates that open a thought with marks which it does
not know, so that it never ends one by itself: the thought ends with the template's own end at the token that the budget
says, whatever happens to the worker."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from pool import BUILD, MODEL, SCALED, WAIT, Gateway, Process, main, until

END = "\n</muse>\n\n"
TURNS = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}{% if message.reasoning_content %}\
{{ '<muse>\\n' + message.reasoning_content + '\\n</muse>\\n\\n' }}{% endif %}{{ message['content'] + '<|im_end|>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}PROMPT{% endif %}"""
PLAIN = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
ALWAYS = TURNS.replace("PROMPT", "{{ '<muse>\\n' }}")
SWITCH = TURNS.replace("PROMPT", "{{ '<muse>\\n\\n</muse>\\n\\n' if enable_thinking is false else '<muse>\\n' }}")
# Parts of an answer have headers: a thought, a call, the text.
PARTS = """{{ tools | tojson if tools }}{% for m in messages %}{% if m.role != 'assistant' %}<|start|>{{ m.role }}<|message|>\
{{ m.content }}<|end|>{% else %}{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>\
{% endif %}{% if m.tool_calls %}<|start|>assistant to=functions.{{ m.tool_calls[0].function.name }}<|channel|>commentary json\
<|message|>{{ m.tool_calls[0].function.arguments | tojson }}<|call|>{% else %}<|start|>assistant<|channel|>final<|message|>\
{{ m.content }}<|return|>{% endif %}{% endif %}{% endfor %}\
{% if add_generation_prompt %}<|start|>assistant<|channel|>analysis<|message|>{% endif %}"""
CHAT, NAMES = "/v1/chat/completions", ("thinking_budget", "reasoning_budget", "thinking_budget_tokens",
                                       "reasoning_budget_tokens", "thinking_token_budget")
ASK = {"messages": [{"role": "user", "content": "What is 2 plus 3?"}], "max_tokens": 45 if SCALED else 60, "seed": 3, "temperature": 1}
RAW = {**ASK, "reasoning_format": "none", "logprobs": True, "ignore_eos": True}


class Served:
    """A pool with a template, and a gateway before it."""

    def __init__(self, template, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")
        (self.folder / "template").write_text(template)
        self.broker = Process(self.folder, "quern-broker", MODEL, "--device", "cpu", "--threads", "1", "--ctx", "512",
                              "--rundir", self.rundir, "--chat-template", str(self.folder / "template"), *options)
        self.broker.says("ready:")
        self.gateway = Gateway(self.folder, self.rundir)
        self.gateway.ready()

    def end(self):
        self.gateway.end()
        self.broker.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tokens(self, **more):
        """The tokens of an answer that no end cuts short."""
        status, _, answer = self.gateway.post(CHAT, **{**RAW, **more})
        assert status == 200, answer
        return [token["token"] for token in answer["choices"][0]["logprobs"]["content"]]

    def message(self, **more):
        status, _, answer = self.gateway.post(CHAT, **{**ASK, **more})
        assert status == 200, answer
        return answer["choices"][0]["message"], answer["usage"]

    def quern(self, *words):
        return subprocess.run([str(BUILD / "quern"), *words, "--connect", self.rundir], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=WAIT)


class Budgets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.always, cls.switch, cls.plain = Served(ALWAYS, "--workers", "2"), Served(SWITCH), Served(PLAIN)
        cls.parts = Served(PARTS)

    @classmethod
    def tearDownClass(cls):
        for served in (cls.always, cls.switch, cls.plain, cls.parts):
            served.end()

    def test_a_thought_ends_at_its_token_under_every_name(self):
        free = self.always.tokens()
        self.assertNotIn("</muse>", "".join(free))
        for budget in (1, 2, 5, 17):
            for name in NAMES if budget == 5 or not SCALED else NAMES[:1]:
                tokens = self.always.tokens(**{name: budget})
                self.assertEqual(tokens[:budget], free[:budget])
                self.assertTrue("".join(tokens[budget:]).startswith(END), tokens)
        for none in (-1, 2**31 - 1) if SCALED else (-1, 5000, 2**31 - 1, None):
            self.assertEqual(self.always.tokens(thinking_budget=none), free)

    def test_a_gateway_has_a_default(self):
        free = self.always.tokens()
        for default, budget in (("4", 4), ("0", 0)):
            gateway = Gateway(self.always.folder, self.always.rundir, "--thinking-budget", default)
            try:
                gateway.ready()

                def tokens(**more):
                    status, _, answer = gateway.post(CHAT, **{**RAW, **more})
                    self.assertEqual(status, 200, answer)
                    return [token["token"] for token in answer["choices"][0]["logprobs"]["content"]]
                self.assertEqual(tokens()[:budget], free[:budget])
                self.assertTrue("".join(tokens()[budget:]).startswith(END), tokens())
                self.assertEqual(tokens(thinking_budget=9)[:9], free[:9])
                self.assertEqual(tokens(thinking_budget=-1), free)
            finally:
                gateway.end()

    def test_the_parts_and_the_usage_are_those_of_any_thought(self):
        n_end = len(self.always.tokens(thinking_budget=4)) - 4
        message, usage = self.always.message(thinking_budget=4, ignore_eos=True)
        self.assertTrue(message["reasoning_content"] and message["content"])
        self.assertNotIn("muse>", message["content"] + message["reasoning_content"])
        reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
        self.assertTrue(4 < reasoning <= 4 + n_end, usage)
        events = self.always.gateway.stream(CHAT, **{**ASK, "thinking_budget": 4, "ignore_eos": True})
        deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
        for name in ("reasoning_content", "content"):
            self.assertEqual("".join(delta.get(name) or "" for delta in deltas), message[name])

    def test_anthropic_and_ollama_have_one(self):
        for budget in (3, 9):
            ask = {"messages": ASK["messages"], "temperature": 0, "max_tokens": 60}
            thinking = {"type": "enabled", "budget_tokens": budget}
            blocks = self.always.gateway.post("/v1/messages", **ask, thinking=thinking)[2]["content"]
            self.assertEqual([block["type"] for block in blocks], ["thinking", "text"])
            ask["options"] = {"temperature": 0, "num_predict": ask.pop("max_tokens"), "thinking_budget": budget}
            name = self.always.gateway.ask("GET", "/v1/models")[2]["data"][0]["id"]
            message = self.always.gateway.post("/api/chat", model=name, stream=False, messages=ask["messages"],
                                               options=ask["options"])[2]["message"]
            self.assertEqual((message["thinking"], message["content"]), (blocks[0]["thinking"], blocks[1]["text"]))

    def test_a_prompt_that_is_sent_as_it_is_has_a_budget_too(self):
        """No template closes its thought."""
        for served in (self.always, self.switch, self.plain):
            name = served.gateway.ask("GET", "/v1/models")[2]["data"][0]["id"]
            for budget in (0, 1):
                status, _, answer = served.gateway.post("/api/generate", model=name, raw=True, stream=False,
                                                        prompt="Once <muse> upon a time",
                                                        options={"temperature": 0, "num_predict": 60, "thinking_budget": budget})
                if served is self.plain:
                    self.assertEqual(status, 200 if budget == 0 else 400, answer)
                    continue
                self.assertEqual(status, 200, answer)
                self.assertIn(END, answer["response"], (budget, answer))
                self.assertEqual(answer["response"].startswith(END), budget == 0, answer)

    def test_no_thought_is_the_templates_or_one_that_is_closed_at_once(self):
        for asked in ({"thinking_budget": 0}, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}):
            message, usage = self.always.message(**asked, ignore_eos=True)
            self.assertTrue(message["content"] and not message.get("reasoning_content"), message)
            self.assertTrue("".join(self.always.tokens(**asked)).startswith(END))
            message, switched = self.switch.message(**asked, ignore_eos=True)
            self.assertTrue(message["content"] and not message.get("reasoning_content"), message)
            self.assertGreater(switched["prompt_tokens"], usage["prompt_tokens"])  # the template closed it
            self.assertNotIn("</muse>", "".join(self.switch.tokens(**asked)))
        # Both from the same text: what the switch writes is what a budget forces.
        temperature = {"temperature": 0, "thinking_budget": 0}
        always, switch = (pool.message(**temperature)[0]["content"] for pool in (self.always, self.switch))
        self.assertEqual(always, switch.lstrip())  # blanks behind the end of a thought are the template's

    def test_json_comes_behind_the_end(self):
        schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"],
                  "additionalProperties": False}
        asked = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
        for budget in (0, 1, 6):
            message, _ = self.always.message(**asked, thinking_budget=budget, max_tokens=200, temperature=0)
            self.assertIsInstance(json.loads(message["content"])["sum"], int)
        # A grammar of the client's is for all of the answer: there is no thought to end.
        self.assertRegex(self.always.message(regex="[a-z]{9}", thinking_budget=2)[0]["content"], "^[a-z]{9}$")

    def test_behind_a_thought_comes_the_text_or_with_tools_what_the_model_wants(self):
        end, text = "<|end|><|start|>assistant<|channel|>", "final<|message|>"
        tool = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object", "properties": {}}}}
        for budget in (0, 3):
            tokens = self.parts.tokens(thinking_budget=budget)
            self.assertTrue("".join(tokens[budget:]).startswith(end + text), tokens)
            tokens = self.parts.tokens(thinking_budget=budget, tools=[tool])
            self.assertTrue("".join(tokens[budget:]).startswith(end), tokens)
            self.assertFalse("".join(tokens[budget:]).startswith(end + text), tokens)

    def test_what_cannot_be_kept_is_refused_by_name(self):
        for name in NAMES:
            for wrong in ("5", -2, 1.5, 2**31, [3], True):
                status, _, answer = self.always.gateway.post(CHAT, **{**ASK, name: wrong})
                self.assertEqual((status, answer["error"]["param"]), (400, name), wrong)
        for wrong in ("5", 0, -1, 1.5):
            thinking = {"type": "enabled", "budget_tokens": wrong}
            status, _, answer = self.always.gateway.post("/v1/messages", messages=ASK["messages"], thinking=thinking)
            self.assertEqual(status, 400)
            self.assertIn("thinking.budget_tokens", answer["error"]["message"])
        status, _, answer = self.plain.gateway.post(CHAT, **ASK, thinking_budget=5)
        self.assertEqual((status, answer["error"]["param"]), (400, "thinking_budget"))
        self.assertIn("unknown how this model ends a thought", answer["error"]["message"])
        self.assertTrue(self.plain.message(thinking_budget=0)[0]["content"])
        for excluding in ({"bad_words": ["muse"]}, {"logit_bias": [["muse", False]]}):
            status, _, answer = self.always.gateway.post(CHAT, **ASK, thinking_budget=5, **excluding)
            self.assertEqual(status, 400, answer)
            self.assertIn("thinking_budget: id", answer["error"]["message"])

    def test_several_choices_and_stops_have_their_own(self):
        status, _, answer = self.always.gateway.post(CHAT, **{**RAW, "n": 3, "thinking_budget": 5})
        for choice in answer["choices"]:
            tokens = [token["token"] for token in choice["logprobs"]["content"]]
            self.assertTrue("".join(tokens[5:]).startswith(END), tokens)
        # A stop string holds in what is forced too, as where the model writes it; min_tokens lets it pass.
        self.assertEqual(self.always.tokens(thinking_budget=5, stop=["</muse>"])[-1][-1], ">")
        tokens = self.always.tokens(thinking_budget=5, stop=["</muse>"], min_tokens=40)
        self.assertGreater(len(tokens), 39)

    def test_an_answer_whose_worker_is_killed_is_the_same(self):
        most, times = (200, 1) if SCALED else (400, 3)
        ask = {**RAW, "max_tokens": most, "thinking_budget": most // 2}
        expected = self.always.tokens(**{name: ask[name] for name in ("max_tokens", "thinking_budget")})
        for _ in range(times):
            connection = self.always.gateway.connect()
            connection.request("POST", CHAT, json.dumps({**ask, "stream": True}))
            answer = connection.getresponse()
            answer.readline()
            for worker in json.loads(self.always.quern("status", "--json").stdout)["workers"]:
                if worker["active"]:
                    os.kill(worker["pid"], signal.SIGKILL)
            lines = [line for line in answer.read().decode().split("\n") if line.startswith("data: {")]
            choices = [choice for line in lines for choice in json.loads(line[6:])["choices"]]
            tokens = [token["token"] for choice in choices for token in (choice["logprobs"] or {}).get("content") or []]
            self.assertEqual(tokens, expected[-len(tokens):])
            self.assertGreater(len(tokens), most - 10)
            connection.close()
            until(lambda: all(worker["state"] == "ready" for worker in
                              json.loads(self.always.quern("status", "--json").stdout)["workers"]), "both are back")

    def test_the_command_takes_one(self):
        said = self.always.quern("run", "--thinking-budget", "3", "--temperature", "0", "-n", "60", "What is 2 plus 3?")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(END, said.stdout)
        said = self.always.quern("run", "--thinking-budget", "0", "--temperature", "0", "-n", "60", "What is 2 plus 3?")
        self.assertTrue(said.stdout.startswith(END), said.stdout)
        said = self.switch.quern("run", "--thinking-budget", "0", "--temperature", "0", "-n", "60", "What is 2 plus 3?")
        self.assertTrue(said.stdout and "muse>" not in said.stdout, said.stdout)
        # A text that opens a thought has one.
        raw = ("--raw", "--thinking-budget", "0", "-n", "60", "--temperature", "0")
        said = self.always.quern("run", *raw, "Once <muse> upon a time")
        self.assertTrue(said.stdout.startswith(END), said.stdout)
        said = self.always.quern("run", *raw, "Once <muse> upon </muse> a time")
        self.assertNotIn(END, said.stdout)
        said = self.plain.quern("run", "--thinking-budget", "3", "Hello")
        self.assertEqual(said.returncode, 1)
        self.assertIn("thinking_budget: unknown how this model ends a thought", said.stderr)
        self.assertEqual(self.plain.quern("run", "--thinking-budget", "-1", "Hello").returncode, 2)


if __name__ == "__main__":
    main()
