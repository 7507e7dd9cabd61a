#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What clients send by default, what they leave out, and what a pool cannot hold."""

import pathlib
import shutil
import tempfile

from pool import MODEL, Base, Process, main

HI = [{"role": "user", "content": "Hi"}]


class Forms(Base):
    def test_what_real_clients_send_by_default_is_accepted(self):
        for path, fields in (
                ("/v1/chat/completions", {"messages": HI, "max_tokens": 3, "top_k": -1, "modalities": ["text"], "n": 1,
                                          "use_beam_search": False, "best_of": 1, "length_penalty": 1.0, "min_tokens": 0,
                                          "skip_special_tokens": True, "reasoning_effort": "none"}),
                ("/v1/completions", {"prompt": "a", "max_tokens": 3, "suffix": None, "mirostat": 0, "mirostat_tau": 5.0}),
                ("/v1/messages", {"messages": HI, "max_tokens": 3, "thinking": {"type": "disabled"}}),
                ("/api/chat", {"messages": HI, "think": False, "stream": False, "truncate": True,
                               "options": {"num_predict": 3, "tfs_z": 1.0, "top_k": -1, "repeat_last_n": 64}}),
                ("/api/embed", {"input": "a", "truncate": True})):
            status, _, answer = self.gateway.post(path, **fields)
            self.assertEqual(status, 200, answer)

    def test_a_message_without_content_is_not_answered(self):
        for path in ("/v1/chat/completions", "/v1/messages", "/api/chat"):
            for message in ({"role": "user"}, {"role": "user", "content": None}, {"role": "user", "content": []}):
                status, _, answer = self.gateway.post(path, messages=[*HI, message], max_tokens=3) \
                    if path != "/api/chat" else self.gateway.post(path, messages=[*HI, message])
                self.assertEqual(status, 400, answer)
                text = answer["error"] if path == "/api/chat" else answer["error"]["message"]
                self.assertIn("messages[1].content", text)

    def test_what_is_not_there_is_told_in_the_form_of_its_family(self):
        status, _, answer = self.gateway.post("/api/pull", model="m")
        self.assertEqual((status, answer), (404, {"error": "nothing found at /api/pull"}))
        status, _, answer = self.gateway.post("/v1/messages/batches", messages=HI)
        self.assertEqual((status, answer["type"], answer["error"]["type"]), (404, "error", "not_found_error"))
        status, _, answer = self.gateway.post("/v1/responses", input="Hi")
        self.assertEqual((status, answer["error"]["code"]), (404, "not_found"))

    def test_an_input_is_named_as_the_client_has_it(self):
        for given, param in (([5, 2**31 - 1], "input[1]"), ([[5], [5, 2**31 - 1]], "input[1][1]")):
            status, _, answer = self.gateway.post("/v1/embeddings", input=given)
            self.assertEqual((status, answer["error"]["param"]), (400, param))
            self.assertTrue(answer["error"]["message"].startswith(param + ": id 2147483647 is outside"), answer)


class Small(Base):
    """A pool whose KV cache holds fewer tokens than the context that it was asked for."""
    TOKENS = 128  # 4 blocks

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "1024", "--kv-blocks", "4",
                             "--frame-us", "0", "--rundir", cls.rundir)
        cls.broker.says(f"context {cls.TOKENS}\n")
        cls.broker.says("the context is 128 tokens instead of 1024")

    def test_what_is_told_is_what_fits(self):
        self.assertEqual(self.gateway.ask("GET", "/v1/models")[2]["data"][0]["context_length"], self.TOKENS)
        self.assertEqual(self.status()["workers"][0]["context"], self.TOKENS)

    def test_a_prompt_that_fits_is_not_refused_for_a_limit_that_nobody_gave(self):
        for path, fields in (("/v1/chat/completions", {"messages": HI}), ("/v1/messages", {"messages": HI}),
                             ("/v1/completions", {"prompt": "a"}), ("/v1/completions", {"prompt": "a", "max_tokens": -1}),
                             ("/api/chat", {"messages": HI, "stream": False}),
                             ("/api/generate", {"prompt": "a", "stream": False, "options": {"num_predict": -1}})):
            status, _, answer = self.gateway.post(path, **fields)
            self.assertEqual(status, 200, answer)
        usage = self.gateway.post("/v1/completions", prompt=[5] * 120, n=2)[2]["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"]), (120, 16))

    def test_a_limit_that_somebody_gave_is_refused_if_it_does_not_fit(self):
        self.assertEqual(self.gateway.post("/v1/completions", prompt=[5] * 120, max_tokens=8)[0], 200)
        for ids, most in (([5] * 120, 9), ([5], 128), ([5], 1024), ([5] * 128, 1)):
            status, _, answer = self.gateway.post("/v1/completions", prompt=ids, max_tokens=most)
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)
        status, _, answer = self.gateway.post("/v1/completions", prompt=[5] * 128)
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"), answer)


class Keys(Base):
    """A key that may have fewer tokens at once than an answer has where nobody says how many."""
    KEY = "sk-0123456789abcdef"

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {cls.KEY} tokens=20\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file))
        super().setUpClass()
        shutil.rmtree(file.parent)

    def complete(self, **fields):
        return self.gateway.ask("POST", "/v1/completions", {"prompt": "a", **fields}, {"x-api-key": self.KEY})

    def test_what_nobody_asked_for_is_no_more_than_the_key_may_have(self):
        status, _, answer = self.complete(n=2)
        self.assertEqual((status, answer["usage"]["completion_tokens"]), (200, 20))
        self.assertEqual(self.complete(max_tokens=21)[2]["error"]["code"], "too_many_tokens")


class Thinks(Base):
    """A model that thinks whatever its template is told."""
    @classmethod
    def start_broker(cls):
        template = cls.folder / "template"
        template.write_text("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}")
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--frame-us", "0", "--rundir", cls.rundir,
                             "--chat-template", str(template))
        cls.broker.says("ready:")

    def test_a_thought_that_cannot_be_switched_off_is_closed_at_once(self):
        for path, param, value in (("/v1/chat/completions", "reasoning_effort", "none"),
                                   ("/v1/messages", "thinking", {"type": "disabled"}), ("/api/chat", "think", False)):
            status, _, answer = self.gateway.post(path, messages=HI, stream=False, **{param: value})
            self.assertEqual(status, 200, answer)
            message = answer["choices"][0]["message"] if "choices" in answer else answer.get("message", answer)
            text = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
            self.assertTrue(text and "<think>" not in text and "</think>" not in text, message)
            self.assertFalse(message.get("reasoning_content"))
            self.assertFalse(message.get("thinking"))
        raw = self.gateway.post("/v1/chat/completions", messages=HI, reasoning_effort="none", reasoning_format="none")[2]
        self.assertTrue(raw["choices"][0]["message"]["content"].startswith("</think>"))
        self.assertEqual(self.gateway.post("/v1/chat/completions", messages=HI, max_tokens=3, reasoning_effort="medium")[0],
                         200)


if __name__ == "__main__":
    main()
