#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What becomes of a prompt: control tokens in texts and in messages, and what /tokenize says of both."""

import subprocess

from pool import BUILD, MODEL, WAIT, Base, main

TURN = "<|im_start|>user\nWhat is Quern?<|im_end|>\n<|im_start|>assistant\n"
ASK = [{"role": "user", "content": "What is Quern?"}]


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

    def test_a_seed_of_64_bits_repeats_an_answer(self):
        said = [self.gateway.post("/v1/completions", prompt="Once", max_tokens=8, seed=seed)[2]["choices"][0]["text"]
                for seed in (2**64 - 1, str(2**64 - 1), 2**64 - 2)]
        self.assertEqual(said[0], said[1])
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", seed=2**64)[0], 400)


if __name__ == "__main__":
    main()
