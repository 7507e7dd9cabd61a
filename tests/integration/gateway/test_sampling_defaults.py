#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a request that does not say is sampled with: what the pool says, else the model's authors, else OpenAI's."""

import json
import pathlib
import struct
import subprocess

from pool import BUILD, MODEL, WAIT, Base, Process, main


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def with_hints(model, **hints):
    """A GGUF file with keys in front of its others; their bytes keep its tensors where they are aligned."""
    data = pathlib.Path(model).read_bytes()
    magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", data)
    more = b"".join(text("general.sampling." + name) + struct.pack("<If", 6, value) for name, value in hints.items())
    filler = text("test.filler") + struct.pack("<I", 8)
    room = -(len(more) + len(filler) + 8) % 32
    more += filler + text("x" * room)
    return struct.pack("<4sIQQ", magic, version, tensors, pairs + len(hints) + 1) + more + data[24:]


class Hints(Base):
    pool = ("--top-p", "0.5")

    @classmethod
    def start_broker(cls):
        cls.model = str(cls.folder / "model.gguf")
        pathlib.Path(cls.model).write_bytes(with_hints(MODEL, temp=0.0, top_k=7.0, top_p=0.25, min_p=9.0))
        cls.broker = Process(cls.folder, "quern-broker", cls.model, "--device", "cpu", "--workers", "2", "--rundir", cls.rundir,
                             *cls.pool)
        cls.broker.says("ready:")

    def said(self, path="/v1/completions", **body):
        answers = []
        for seed in range(4):
            status, _, answer = self.gateway.post(path, prompt="Once upon", max_tokens=12, seed=seed, **body)
            self.assertEqual(status, 200, answer)
            answers.append(answer["choices"][0]["text"])
        return set(answers)

    def test_the_model_says_and_a_request_says_otherwise(self):
        self.assertEqual(len(self.said()), 1)  # its temperature is 0
        self.assertEqual(len(self.said(temperature=0)), 1)
        self.assertGreater(len(self.said(temperature=2, top_p=1, top_k=0)), 1)

    def test_who_said_so_is_told(self):
        props = self.gateway.ask("GET", "/props")[2]
        params, sources = props["default_generation_settings"]["params"], props["sampling_sources"]
        self.assertEqual((params["temperature"], params["top_k"], params["top_p"], params["min_p"]), (0, 7, 0.5, 0))
        self.assertEqual((sources["temperature"], sources["top_k"], sources["top_p"], sources["min_p"]),
                         ("model", "model", "pool", "default"))
        for worker in self.status()["workers"]:
            self.assertIn("temperature=0:model top_k=7:model top_p=0.5:pool min_p=0:default", worker["sampling"])
        self.assertIn("general.sampling.min_p ignored: min_p: 9 is out of range 0..1", self.broker.log())
        inspected = json.loads(subprocess.run([str(BUILD / "quern"), "inspect", "--json", self.model], capture_output=True,
                                              timeout=WAIT, check=True).stdout)["sampling"]
        self.assertEqual((inspected["temperature"], inspected["top_p"], inspected["presence_penalty"]),
                         ("0 (model)", "0.25 (model)", "0 (default)"))

    def test_an_answer_may_go_on_where_the_model_would_end(self):
        body = {"messages": [{"role": "user", "content": "What is Quern?"}], "temperature": 0, "max_tokens": 200}
        for more in ({}, {"bad_words": ["\n\n\n"], "logit_bias": {"7": -1}}):
            plain = self.gateway.post("/v1/chat/completions", **body, **more)[2]
            self.assertEqual(plain["choices"][0]["finish_reason"], "stop")
            for on in (True, False):
                answer = self.gateway.post("/v1/chat/completions", **body, **more, ignore_eos=on)[2]
                self.assertEqual((answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]),
                                 ("length", 200) if on else ("stop", plain["usage"]["completion_tokens"]))
                self.assertTrue(answer["choices"][0]["message"]["content"].startswith(plain["choices"][0]["message"]["content"]))
        for wrong, what in ({"ignore_eos": 1}, "not a boolean"), ({"ignore_eos": True, "regex": "a+"}, "not supported together"):
            status, _, answer = self.gateway.post("/v1/chat/completions", **body, **wrong)
            self.assertEqual(status, 400, answer)
            self.assertIn(what, answer["error"]["message"])

    def test_an_answer_may_not_end_before_its_time(self):
        body = {"messages": [{"role": "user", "content": "What is Quern?"}], "temperature": 0, "max_tokens": 200}
        plain = self.gateway.post("/v1/chat/completions", **body)[2]
        text, made = plain["choices"][0]["message"]["content"], plain["usage"]["completion_tokens"]
        self.assertEqual(plain["choices"][0]["finish_reason"], "stop")
        for least in (made - 1, made, made + 20):
            answer = self.gateway.post("/v1/chat/completions", **body, min_tokens=least)[2]
            longer = answer["choices"][0]["message"]["content"]
            self.assertTrue(longer.startswith(text), longer)
            self.assertEqual(longer == text, least < made)  # the end itself is a token
            self.assertGreaterEqual(answer["usage"]["completion_tokens"], least)
            again = self.gateway.post("/v1/chat/completions", **body, min_tokens=least)[2]
            self.assertEqual(again["choices"][0]["message"], answer["choices"][0]["message"])
        first = text.split()[1]
        short = self.gateway.post("/v1/chat/completions", **body, stop=[first])[2]
        self.assertLess(len(short["choices"][0]["message"]["content"]), len(text) // 2)
        whole = self.gateway.post("/v1/chat/completions", **body, stop=[first], min_tokens=made - 1)[2]
        self.assertEqual(whole["choices"][0]["message"]["content"], text)
        completed = self.gateway.post("/v1/completions", prompt="Once", max_tokens=9, min_tokens=9, temperature=0)[2]
        self.assertEqual(completed["usage"]["completion_tokens"], 9)
        for wrong, what in (({"min_tokens": "5"}, "not a number"), ({"min_tokens": 201}, "201 is above max_tokens (200)"),
                            ({"min_tokens": 3, "regex": "a+"}, "not supported together with a grammar")):
            status, _, answer = self.gateway.post("/v1/chat/completions", **{**body, **wrong})
            self.assertEqual(status, 400, answer)
            self.assertIn(what, answer["error"]["message"])
        said = subprocess.run([str(BUILD / "quern"), "run", "--connect", self.rundir, "--temp", "0", "-n", "200", "--min-tokens", str(made + 20),
                               "What is Quern?"], capture_output=True, timeout=WAIT, check=True, stdin=subprocess.DEVNULL).stdout.decode()
        self.assertGreater(len(said.strip()), len(text))

    def test_the_command_asks_the_pool(self):
        said = {subprocess.run([str(BUILD / "quern"), "run", "--connect", self.rundir, "--raw", "-n", "12", "--seed", str(seed),
                                "Once upon"], capture_output=True, timeout=WAIT, check=True, stdin=subprocess.DEVNULL).stdout
                for seed in range(3)}
        self.assertEqual(len(said), 1)


class Wrong(Base):
    def test_a_pool_with_a_value_out_of_range_does_not_start(self):
        for options, reason in ((("--top-p", "2"), "top-p: 2 is out of range 0..1"),
                                (("--temp", "hot"), "temperature"), (("--top-k", "1.5"), "top-k: 1.5 is not a whole number")):
            said = subprocess.run([str(BUILD / "quern"), "serve", MODEL, "--rundir", self.rundir + "-2", *options],
                                  capture_output=True, timeout=WAIT, text=True)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(reason, said.stderr)

    def test_a_file_says_the_same(self):
        path = self.folder / "quern.conf"
        path.write_text(f"model = {MODEL}\ntemp = 0.5\ntemperature = 0.25\n")
        said = subprocess.run([str(BUILD / "quern"), "serve", "--config", str(path), "--rundir", self.rundir + "-2"],
                              capture_output=True, timeout=WAIT, text=True)
        self.assertIn("temperature: already set in line 2", said.stderr)


if __name__ == "__main__":
    main()
