#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What becomes of a prompt: control tokens in texts and in messages, and what /tokenize says of both."""

import subprocess

from pool import BUILD, MODEL, WAIT, Base, Process, main

TURN = "<|im_start|>user\nWhat is Quern?<|im_end|>\n<|im_start|>assistant\n"
ASK = [{"role": "user", "content": "What is Quern?"}]
TOOLS = [{"type": "function", "function": {"name": "rain", "parameters": {"type": "object"}}}]
PLAIN = "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"


class Prompts(Base):
    def tokens_of(self, path, **body):
        """How many tokens the prompt of a request has."""
        status, _, answer = self.gateway.post(path, **body)
        self.assertEqual(status, 200, answer)
        return answer.get("prompt_eval_count") or answer["usage"]["prompt_tokens"]

    def command(self, *arguments, text):
        said = subprocess.run([str(BUILD / "quern"), *arguments], input=text, capture_output=True, timeout=WAIT, text=True,
                              check=True)
        return said.stdout

    def test_a_template_written_out_as_text_is_the_conversation(self):
        chat = self.tokens_of("/v1/chat/completions", messages=ASK, max_tokens=1)
        self.assertEqual(self.tokens_of("/v1/completions", prompt=TURN, max_tokens=1), chat)
        raw = {"prompt": TURN, "raw": True, "stream": False, "options": {"num_predict": 1}}
        self.assertEqual(self.tokens_of("/api/generate", **raw), chat)
        for more in (self.tokens_of("/v1/completions", prompt=TURN, max_tokens=1, special=False),
                     self.tokens_of("/api/generate", **raw, special=False)):
            self.assertGreater(more, chat + 6)
        said = subprocess.run([str(BUILD / "quern"), "run", "--connect", self.rundir, "--raw", "--json", "-n", "1", TURN],
                              capture_output=True, timeout=WAIT, check=True, stdin=subprocess.DEVNULL)
        self.assertIn(f'"prompt_tokens":{chat},', said.stdout.decode().replace(" ", ""))
        said = subprocess.run([str(BUILD / "quern"), "run", "--connect", self.rundir, "--raw", "--no-special", "--json", "-n",
                               "1", TURN], capture_output=True, timeout=WAIT, check=True, stdin=subprocess.DEVNULL)
        self.assertIn(f'"prompt_tokens":{more},', said.stdout.decode().replace(" ", ""))

    def test_control_tokens_in_messages_stay_text(self):
        plain = self.tokens_of("/v1/chat/completions", messages=[{"role": "user", "content": "a"}], max_tokens=1)
        spelled = self.tokens_of("/v1/chat/completions", messages=[{"role": "user", "content": "a<|im_end|>"}], max_tokens=1)
        self.assertGreater(spelled, plain + 1)
        said = {"stream": False, "options": {"num_predict": 1}}
        self.assertEqual(self.tokens_of("/api/generate", prompt="a<|im_end|>", **said), spelled)

    def test_the_command_and_the_path_tokenize_alike(self):
        for text, options, flags in ((TURN, {}, ()), (TURN, {"parse_special": False}, ("--no-parse-special",)),
                                     ("Hi", {"add_special": True}, ("--add-special",))):
            ids = self.gateway.post("/tokenize", content=text, **options)[2]["tokens"]
            self.assertEqual(self.command("tokenize", *flags, MODEL, text=text), " ".join(map(str, ids)) + "\n")
        self.assertLess(len(self.gateway.post("/tokenize", content=TURN)[2]["tokens"]),
                        len(self.gateway.post("/tokenize", content=TURN, special=False)[2]["tokens"]))

    def test_pieces_are_texts_or_bytes(self):
        text = "Hi\n<|im_end|>\N{GRINNING FACE}"
        answer = self.gateway.post("/tokenize", content=text, with_pieces=True)[2]
        ids = self.gateway.post("/tokenize", content=text)[2]["tokens"]
        self.assertEqual([token["id"] for token in answer["tokens"]], ids)
        pieces = [token["piece"] for token in answer["tokens"]]
        self.assertIn("<|im_end|>", pieces)
        self.assertTrue(any(isinstance(piece, list) for piece in pieces), pieces)
        self.assertEqual(b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces).decode(), text)
        self.assertEqual(self.gateway.post("/tokenize", content="", with_pieces=True)[0], 400)
        lines = self.command("tokenize", "--with-pieces", MODEL, text=text).splitlines()
        self.assertEqual([int(line.split("\t")[0]) for line in lines], ids)
        self.assertIn('"\\xf0', "".join(lines))
        self.assertIn('\t"<|im_end|>"', "".join(lines))
        self.assertIn("not a boolean", self.gateway.post("/tokenize", content="a", with_pieces=1)[2]["error"]["message"])

    def test_the_prompt_of_a_conversation_is_told(self):
        hi = [{"role": "user", "content": "Hi"}]
        self.assertEqual(self.gateway.post("/apply-template", messages=hi)[2],
                         {"prompt": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"})
        for messages in (hi, [{"role": "system", "content": "Be brief."}, *hi, {"role": "assistant", "content": "Quern is"}],
                         [{"role": "user", "content": "gr\u00f6\u00dfe \N{GRINNING FACE} " * 50}]):
            prompt = self.gateway.post("/apply-template", messages=messages, max_tokens=5, temperature=0)[2]["prompt"]
            answer = self.gateway.post("/tokenize", messages=messages)[2]
            self.assertEqual(answer, self.gateway.post("/tokenize", content=prompt)[2])
            self.assertEqual(answer["count"], self.tokens_of("/v1/chat/completions", messages=messages, max_tokens=1))
            pieces = self.gateway.post("/tokenize", messages=messages, with_pieces=True)[2]["tokens"]
            self.assertEqual(b"".join(each["piece"].encode() if isinstance(each["piece"], str) else bytes(each["piece"])
                                      for each in pieces).decode(), prompt)
        self.assertTrue(prompt.endswith("<|im_end|>\n<|im_start|>assistant\n"))
        going_on = [*hi, {"role": "assistant", "content": "Quern is"}]
        self.assertTrue(self.gateway.post("/apply-template", messages=going_on)[2]["prompt"].endswith("assistant\nQuern is"))
        self.assertTrue(self.gateway.post("/apply-template", messages=going_on, add_generation_prompt=True)[2]["prompt"]
                        .endswith("Quern is<|im_end|>\n<|im_start|>assistant\n"))

    def test_what_a_user_spells_out_stays_text_in_it(self):
        messages = [{"role": "user", "content": "a<|im_end|>"}]
        prompt = self.gateway.post("/apply-template", messages=messages)[2]["prompt"]
        self.assertIn("a<|im_end|><|im_end|>\n", prompt)
        self.assertGreater(self.gateway.post("/tokenize", messages=messages)[2]["count"],
                           self.gateway.post("/tokenize", content=prompt)[2]["count"])

    def test_tokens_of_a_message_are_counted_as_they_are_charged(self):
        for more in ({}, {"system": "Be brief."}, {"system": [{"type": "text", "text": "Be brief."}], "temperature": 0.5}):
            body = {"messages": [{"role": "user", "content": "What is Quern?"}], "max_tokens": 1, **more}
            counted = self.gateway.post("/v1/messages/count_tokens", **body)
            usage = self.gateway.post("/v1/messages", **body)[2]["usage"]
            self.assertEqual((counted[0], counted[2]),
                             (200, {"input_tokens": usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)}))
        status, _, answer = self.gateway.post("/v1/messages/count_tokens", max_tokens=1)
        self.assertEqual((status, answer["type"], answer["error"]["type"]), (400, "error", "invalid_request_error"))

    def test_a_question_that_asks_for_too_much_is_refused_by_name(self):
        hi = [{"role": "user", "content": "Hi"}]
        for path, body, param in (("/tokenize", {"content": "a", "messages": hi}, "messages"),
                                  ("/tokenize", {"content": "a", "tools": TOOLS}, "messages"),
                                  ("/tokenize", {"content": "a", "continue_final_message": True}, "messages"),
                                  ("/tokenize", {"messages": hi, "add_special": True}, "add_special"),
                                  ("/tokenize", {}, "content"), ("/apply-template", {}, "messages"),
                                  ("/apply-template", {"messages": hi, "wrong": 1}, "wrong"),
                                  ("/apply-template", {"messages": hi, "continue_final_message": True},
                                   "continue_final_message")):
            status, _, answer = self.gateway.post(path, **body)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        for path in ("/tokenize", "/apply-template", "/v1/messages/count_tokens"):
            self.assertEqual(self.gateway.post(path, messages=hi, model="nobody")[0], 404)

    def test_a_seed_of_64_bits_repeats_an_answer(self):
        said = [self.gateway.post("/v1/completions", prompt="Once", max_tokens=8, seed=seed)[2]["choices"][0]["text"]
                for seed in (2**64 - 1, str(2**64 - 1), 2**64 - 2)]
        self.assertEqual(said[0], said[1])
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", seed=2**64)[0], 400)


class WithoutTools(Base):
    """The template knows no tools."""

    @classmethod
    def start_broker(cls):
        template = cls.folder / "template"
        template.write_text(PLAIN)
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--chat-template", str(template),
                             "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def test_tools_are_refused(self):
        for path in ("/tokenize", "/apply-template"):
            status, _, answer = self.gateway.post(path, messages=ASK, tools=TOOLS)
            self.assertEqual((status, answer["error"]["param"]), (400, "tools"), answer)


if __name__ == "__main__":
    main()
