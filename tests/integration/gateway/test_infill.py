#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A gap in a text that is filled in, and a turn of the assistant that goes on."""

from pool import MODEL, Base, Process, main, with_tokens

ASK = {"role": "user", "content": "What is Quern?"}
PREFIX, SUFFIX, MIDDLE, FILE = 1, 2, 3, 4


class Turns(Base):
    def test_a_last_message_of_the_assistant_goes_on(self):
        """The prompt is as long as the conversation and the text: nothing closes the turn, and none is opened."""
        for path, more in (("/v1/chat/completions", {"max_tokens": 1}), ("/v1/messages", {"max_tokens": 1}),
                           ("/api/chat", {"stream": False, "options": {"num_predict": 1}})):
            def length(*messages, path=path, more=more, **options):
                status, _, answer = self.gateway.post(path, messages=list(messages), **more, **options)
                self.assertEqual(status, 200, answer)
                usage = answer.get("usage", {})
                cached = usage.get("cache_read_input_tokens", 0)
                return answer.get("prompt_eval_count") or usage.get("prompt_tokens") or usage["input_tokens"] + cached
            said = {"role": "assistant", "content": "Quern is"}
            words = len(self.gateway.post("/tokenize", content="Quern is")[2]["tokens"])
            self.assertEqual(length(ASK, said), length(ASK) + words, path)
            if path == "/v1/chat/completions":
                self.assertEqual(length(ASK, said, continue_final_message=True, add_generation_prompt=False),
                                 length(ASK) + words)
                self.assertGreater(length(ASK, said, continue_final_message=False), length(ASK) + words + 2)

    def test_what_cannot_go_on_is_refused(self):
        for options, messages in (({"continue_final_message": True}, [ASK]), ({"add_generation_prompt": False}, [ASK]),
                                  ({"continue_final_message": True, "add_generation_prompt": True},
                                   [ASK, {"role": "assistant", "content": "x"}]),
                                  ({"continue_final_message": 1}, [ASK])):
            status, _, answer = self.gateway.post("/v1/chat/completions", messages=messages, max_tokens=1, **options)
            self.assertEqual((status, answer["error"]["param"]), (400, [*options][-1]), answer)

    def test_a_model_that_cannot_fill_in_refuses_by_name(self):
        for path, body in (("/infill", {"input_prefix": "a", "input_suffix": "b"}), ("/v1/completions", {"prompt": "a", "suffix": "b"}),
                           ("/api/generate", {"prompt": "a", "suffix": "b", "stream": False})):
            status, _, answer = self.gateway.post(path, **body)
            self.assertEqual(status, 400, answer)
            error = answer["error"]
            self.assertIn("no fim_pre token", error if isinstance(error, str) else error["message"])


class Infill(Base):
    @classmethod
    def start_broker(cls):
        model = cls.folder / "model.gguf"
        model.write_bytes(with_tokens(MODEL, fim_pre=PREFIX, suffix=SUFFIX, fim_mid=MIDDLE, fim_sep=FILE))
        cls.broker = Process(cls.folder, "quern-broker", str(model), "--device", "cpu", "--temp", "0", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def ids(self, text):
        return self.gateway.post("/tokenize", content=text, parse_special=False)[2]["tokens"]

    def test_a_stop_sequence_is_told(self):
        text = self.gateway.post("/v1/messages", messages=[ASK], max_tokens=20)[2]["content"][0]["text"]
        stop = text[5:8]
        answer = self.gateway.post("/v1/messages", messages=[ASK], max_tokens=20, stop_sequences=["\u2603", stop])[2]
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", stop))
        events = self.gateway.ask("POST", "/v1/messages", {"messages": [ASK], "max_tokens": 20, "stop_sequences": [stop],
                                                           "stream": True})[2]
        self.assertIn('"stop_reason":"stop_sequence","stop_sequence":', events)
        answer = self.gateway.post("/v1/messages", messages=[ASK], max_tokens=3)[2]
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("max_tokens", None))

    def test_every_form_asks_for_the_same(self):
        before, behind = "def f(x):\n    ", "\n    return y<|im_end|>"
        prompt = [PREFIX, *self.ids(before), SUFFIX, *self.ids(behind), MIDDLE]
        wanted = self.gateway.post("/v1/completions", prompt=prompt, max_tokens=8)[2]
        text = wanted["choices"][0]["text"]
        completion = self.gateway.post("/v1/completions", prompt=before, suffix=behind, max_tokens=8)[2]
        self.assertEqual(completion["usage"]["prompt_tokens"], len(prompt))
        self.assertEqual(completion["choices"][0]["text"], text)
        ollama = self.gateway.post("/api/generate", prompt=before, suffix=behind, stream=False, options={"num_predict": 8})[2]
        self.assertEqual((ollama["response"], ollama["prompt_eval_count"]), (text, len(prompt)))
        filled = self.gateway.post("/infill", input_prefix="def f(x):\n", prompt="    ", input_suffix=behind, n_predict=8)[2]
        self.assertEqual((filled["content"], filled["tokens_evaluated"], filled["stop"]), (text, len(prompt), True))
        one = self.gateway.post("/infill", input_prefix=before, input_suffix=behind, n_predict=1)[2]
        self.assertEqual((one["stop_type"], one["limit"]), ("limit", "max_tokens"))
        events = self.gateway.ask("POST", "/infill", {"input_prefix": before, "input_suffix": behind, "n_predict": 8,
                                                      "stream": True})[2]
        self.assertIn('"stop":true', events)

    def test_ids_that_end_an_answer_end_a_filled_gap(self):
        """The model's own ends of a gap are added to them."""
        word = self.ids("a")[0]
        for ends, finish, length in (([word], "stop", 1), ([word + 1, word], "stop", 1), ([word + 1], "length", 4)):
            answer = self.gateway.post("/v1/completions", prompt="x", suffix="y", max_tokens=4, stop_token_ids=ends,
                                       logit_bias={str(word): 100})[2]
            self.assertEqual((answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]), (finish, length))

    FILES = [{"text": "int a;\n", "time": 123, "filename": "a.c"}, {"text": "int b;\n", "time": [1, 2], "filename": "b.c"}]

    def test_what_vscodes_plugin_sends_is_answered_as_it_reads_it(self):
        """First to warm the cache, then for several completions, of which it shows those that differ."""
        ask = {"id_slot": 0, "input_prefix": "", "input_suffix": "", "input_extra": self.FILES, "prompt": "", "cache_prompt": True,
               "t_max_prompt_ms": 500}
        status, _, answer = self.gateway.post("/infill", **ask, n_predict=0, samplers=[], t_max_predict_ms=1)
        self.assertEqual((status, answer.get("content")), (200, ""), answer)
        extra = [FILE, *self.ids("a.c"), *self.ids("\n"), *self.ids("int a;\n"), FILE, *self.ids("b.c"), *self.ids("\n"),
                 *self.ids("int b;\n"), FILE, *self.ids("file"), *self.ids("\n")]
        self.assertEqual(answer["tokens_evaluated"], len(extra) + 3)
        ask.update(input_prefix="int main()\n{\n", prompt="    ret", input_suffix="\n}\n", n_predict=16, top_k=40, top_p=0.99,
                   stream=False, samplers=["top_k", "top_p", "infill"], n_indent=4, t_max_predict_ms=2500)
        context = self.gateway.ask("GET", "/props")[2]["default_generation_settings"]["n_ctx"]
        status, _, answer = self.gateway.post("/infill", **ask, n_cmpl=1)
        self.assertEqual(status, 200, answer)
        self.assertIn("content", answer)
        self.assertEqual(answer["generation_settings"]["n_ctx"], context)
        self.assertEqual((answer["truncated"], answer["tokens_cached"] + answer["timings"]["prompt_n"]),
                         (False, answer["tokens_evaluated"]))
        for name in ("prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"):
            self.assertIsInstance(answer["timings"][name], (int, float), name)
        self.assertGreater(answer["timings"]["predicted_n"], 0)
        status, _, answers = self.gateway.post("/infill", **ask, n_cmpl=3)
        self.assertEqual((status, [each["index"] for each in answers]), (200, [0, 1, 2]), answers)
        for each in answers:
            self.assertIn("content", each)
            self.assertLessEqual(each["tokens_predicted"], 16)
            self.assertEqual((each["timings"]["predicted_n"], each["timings"]["prompt_n"] + each["timings"]["cache_n"]),
                             (each["tokens_predicted"], each["tokens_evaluated"]))
        events = self.gateway.ask("POST", "/infill", {**ask, "n_cmpl": 2, "stream": True})[2]
        self.assertEqual(events.count('"stop":true'), 2)
        self.assertIn('"index":1,', events)

    def test_what_vims_plugin_sends_is_answered_as_it_reads_it(self):
        """It names the members that it reads, and has no others; `model` is empty where none is set."""
        ask = {"id_slot": 0, "input_prefix": "", "input_suffix": "", "input_extra": self.FILES, "prompt": "", "stream": False,
               "cache_prompt": True, "model": ""}
        status, _, answer = self.gateway.post("/infill", **ask, n_predict=0, temperature=0.0, samplers=[], t_max_prompt_ms=1,
                                              t_max_predict_ms=1, response_fields=[""])
        self.assertEqual((status, answer), (200, {}))
        times = [f"timings/{part}_{kind}" for part in ("prompt", "predicted")
                 for kind in ("n", "ms", "per_token_ms", "per_second")]
        fields = ["content", *times, "truncated", "tokens_cached"]
        ask.update(input_prefix="int main()\n{\n", prompt="    ret", input_suffix="\n}\n", n_predict=8, stop=[], n_indent=4,
                   top_k=40, top_p=0.9, samplers=["top_k", "top_p", "infill"], t_max_prompt_ms=500, t_max_predict_ms=1000)
        status, _, answer = self.gateway.post("/infill", **ask, response_fields=[*fields, "no/such", "timings/prompt_n/x"])
        self.assertEqual((status, [*answer]), (200, fields), answer)
        self.assertGreater(answer["timings/predicted_n"], 0)
        whole = self.gateway.post("/infill", **ask, seed=1)[2]
        self.assertEqual(self.gateway.post("/infill", **ask, seed=1, response_fields=["content"])[2], {"content": whole["content"]})
        chat = {"id_slot": 2, "messages": [ASK], "cache_prompt": True, "model": ""}
        status, _, answer = self.gateway.post("/v1/chat/completions", **chat, samplers=[], n_predict=0, stream=False,
                                              response_fields=[""])
        self.assertEqual((status, answer["choices"][0]["message"]["content"]), (200, ""), answer)
        for order in ({"n_predict": 0, "max_tokens": 50}, {"max_tokens": 50, "n_predict": 0}):
            answer = self.gateway.post("/v1/chat/completions", **chat, **order, logprobs=True, ignore_eos=True)[2]
            self.assertEqual((answer["usage"]["completion_tokens"], answer["choices"][0]["message"]["content"]), (1, ""), answer)
            self.assertFalse((answer["choices"][0].get("logprobs") or {}).get("content"), answer)
        status, _, events = self.gateway.ask("POST", "/v1/chat/completions", {
            **chat, "min_p": 0.1, "temperature": 0.1, "samplers": ["min_p", "temperature"], "stream": True})
        self.assertEqual(status, 200, events)
        self.assertIn('"content":"', events)

    def test_the_prefix_cache_is_asked_as_in_every_format(self):
        def cached(**fields):
            status, _, answer = self.gateway.post("/infill", input_prefix="mill " * 100, input_suffix="b", n_predict=1, **fields)
            self.assertEqual(status, 200, answer)
            return answer["tokens_cached"]
        for fields in ({"cache_prompt": False}, {"cache_prompt": False}, {}):  # the first two leave nothing
            self.assertEqual(cached(**fields), 0)
        self.assertGreater(cached(), 0)
        self.assertEqual(cached(cache_salt="another"), 0)

    def test_files_that_do_not_fit_are_left_out(self):
        files = [{"filename": f"{i}.c", "text": "word " * 300} for i in range(9)]
        status, _, answer = self.gateway.post("/infill", input_prefix="a", input_suffix="b", input_extra=files, n_predict=4)
        self.assertEqual(status, 200, answer)
        self.assertGreater(answer["tokens_evaluated"], 300)
        self.assertLessEqual(answer["tokens_evaluated"], 768)

    def test_what_is_wrong_is_named(self):
        for body, param in (({}, "input_prefix"), ({"input_prefix": 1}, "input_prefix"),
                            ({"input_prefix": "a", "input_extra": [{"text": "x"}]}, "input_extra[0]"),
                            ({"input_prefix": "a", "input_extra": {}}, "input_extra"),
                            ({"input_prefix": "a", "samplers": ["mirostat"]}, "samplers"),
                            ({"input_prefix": "a", "samplers": ["dry"] * 65}, "samplers"),
                            ({"input_prefix": "a", "samplers": ["temp top_k"]}, "samplers"),
                            ({"input_prefix": "a", "samplers": ["min-p penalties infill dry xtc" + "x" * 9999]}, "samplers"),
                            ({"input_prefix": "a", "response_fields": "content"}, "response_fields"),
                            ({"input_prefix": "a", "response_fields": ["content", 1]}, "response_fields"),
                            ({"input_prefix": "a", "response_fields": ["a"] * 65}, "response_fields"),
                            ({"input_prefix": "a", "response_fields": ["a" * 128]}, "response_fields"),
                            ({"input_prefix": "a", "id_slot": "first"}, "id_slot"),
                            ({"input_prefix": "a", "n_cmpl": 0}, "n_cmpl"),
                            ({"input_prefix": "a", "lora": [{"id": 0}]}, "lora")):
            status, _, answer = self.gateway.post("/infill", **body)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        self.assertEqual(self.gateway.post("/v1/completions", prompt=[1, 2], suffix="b")[0], 400)


if __name__ == "__main__":
    main()
