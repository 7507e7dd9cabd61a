#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What HTTP clients are answered, as they ask and as they should not."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from pool import WAIT, Base, child_of, go_on, long_request, main, read_all, until


class Answers(Base):
    def test_a_stream_says_what_the_whole_answer_says(self):
        for path, prompt in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
                             ("/v1/completions", {"prompt": "Once"})):
            request = {**prompt, "seed": 5, "max_tokens": 30, "n": 2, "temperature": 1}
            status, _, whole = self.gateway.post(path, **request)
            self.assertEqual(status, 200, whole)
            events = self.gateway.stream(path, **request, stream_options={"include_usage": True})
            for i in range(2):
                choice = whole["choices"][i]
                text = choice["message"]["content"] if "message" in choice else choice["text"]
                parts = [event["choices"][0] for event in events[:-1] if event["choices"][0]["index"] == i]
                joined = "".join(part["delta"].get("content", "") if "delta" in part else part["text"]
                                 for part in parts)
                self.assertEqual(text, joined)
                self.assertEqual(choice["finish_reason"], parts[-1]["finish_reason"])
                self.assertTrue(all(part["finish_reason"] is None for part in parts[:-1]))
            self.assertNotEqual(whole["choices"][0], {**whole["choices"][1], "index": 0})
            self.assertEqual(events[-1]["choices"], [])
            self.assertEqual(events[-1]["usage"]["completion_tokens"], 60)
            self.assertEqual(whole["usage"]["completion_tokens"], 60)
            self.assertEqual(whole["usage"]["total_tokens"], whole["usage"]["prompt_tokens"] + 60)
            self.assertEqual(len({event["id"] for event in events}), 1)

    def test_a_repeated_prompt_comes_from_the_cache(self):
        prompt = list(range(5, 205))
        self.gateway.post("/v1/completions", prompt=prompt, max_tokens=1)
        usage = self.gateway.post("/v1/completions", prompt=prompt, max_tokens=1)[2]["usage"]
        self.assertEqual(usage["prompt_tokens"], 200)
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 192)

    def test_of_a_short_prompt_again_all_but_one_token_comes_from_the_cache(self):
        cached = []
        for prompt in (range(5, 21), range(5, 21), range(5, 37), [*range(5, 20), 300], [*range(5, 15), *range(300, 306)]):
            usage = self.gateway.post("/v1/completions", prompt=list(prompt), max_tokens=1, cache_salt="short")[2]["usage"]
            cached.append(usage["prompt_tokens_details"]["cached_tokens"])
        self.assertEqual(cached, [0, 15, 16, 15, 10])

    def test_a_stop_string_ends_the_answer_before_it(self):
        request = {"prompt": "Once", "seed": 1, "max_tokens": 100, "temperature": 0.9}
        text = self.gateway.post("/v1/completions", **request)[2]["choices"][0]["text"]
        at = len(text) // 2
        choice = self.gateway.post("/v1/completions", **request, stop=[text[at:at + 3]])[2]["choices"][0]
        self.assertEqual(choice["text"], text[:text.index(text[at:at + 3])])
        self.assertEqual(choice["finish_reason"], "stop")

    def test_ollamas_clients_load_a_model_without_a_prompt(self):
        name = self.gateway.ask("GET", "/api/tags")[2]["models"][0]["name"]
        for path, more, said in (("/api/generate", {}, {"response": ""}), ("/api/generate", {"prompt": ""}, {"response": ""}),
                                 ("/api/chat", {"messages": []}, {"message": {"role": "assistant", "content": ""}}),
                                 ("/api/chat", {}, {"message": {"role": "assistant", "content": ""}})):
            for keep, reason in ((None, "load"), ("5m", "load"), (-1, "load"), (0, "unload"), ("0s", "unload"), ("0", "unload")):
                kept = {} if keep is None else {"keep_alive": keep}
                status, headers, answer = self.gateway.post(path, model=name + ":latest", **more, **kept)
                self.assertEqual((status, headers["Content-Type"]), (200, "application/json"), answer)
                self.assertRegex(answer.pop("created_at"), r"^\d{4}-.*Z$")
                self.assertEqual(answer, {"model": name, "done": True, "done_reason": reason, **said})
            self.assertEqual(self.gateway.post(path, model="none", **more)[0], 404)
        self.assertEqual(self.gateway.post("/v1/completions", model=name)[0], 400)

    def by_index(self, events):
        texts = {}
        for event in events:
            for choice in event["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
        return [texts[index] for index in sorted(texts)]

    def test_several_prompts_are_answered_in_one(self):
        one, two = list(range(300, 340)), list(range(400, 410))
        for prompts in (["Once upon a time", "b", "ccc"], [one, two, [301]]):
            singles = [self.gateway.post("/v1/completions", prompt=prompt, max_tokens=12, seed=7 + i)[2]
                       for i, prompt in enumerate(prompts)]
            answer = self.gateway.post("/v1/completions", prompt=prompts, max_tokens=12, seed=7)[2]
            texts = [single["choices"][0]["text"] for single in singles]
            self.assertEqual([(choice["index"], choice["text"]) for choice in answer["choices"]], list(enumerate(texts)))
            for name in ("prompt_tokens", "completion_tokens"):
                self.assertEqual(answer["usage"][name], sum(single["usage"][name] for single in singles))
            self.assertEqual(self.by_index(self.gateway.stream("/v1/completions", prompt=prompts, max_tokens=12, seed=7)), texts)
            twice = self.gateway.post("/v1/completions", prompt=prompts, max_tokens=12, seed=7, n=2)[2]
            self.assertEqual([choice["index"] for choice in twice["choices"]], list(range(6)))
            self.assertEqual(twice["choices"][0]["text"], texts[0])
            self.assertEqual(twice["usage"]["prompt_tokens"], answer["usage"]["prompt_tokens"])
        self.assertEqual(self.gateway.post("/v1/completions", prompt=[one], max_tokens=5, seed=1)[2]["choices"],
                         self.gateway.post("/v1/completions", prompt=one, max_tokens=5, seed=1)[2]["choices"])
        mixed = self.gateway.post("/v1/completions", max_tokens=1, prompt=["a", [1]])[2]  # texts and ids together
        self.assertEqual(len(mixed["choices"]), 2)
        for more, param in (({"prompt": ["a", ""]}, "prompt[1]"), ({"prompt": ["a", 1]}, "prompt[1]"), ({"prompt": [[1], ["a", "b"]]}, "prompt[1]"),
                            ({"prompt": ["a"] * 129}, "prompt"), ({"prompt": ["a"] * 65, "n": 2}, "prompt"),
                            ({"prompt": ["a", "b"], "suffix": "c"}, "suffix")):
            status, _, answer = self.gateway.post("/v1/completions", max_tokens=1, **more)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)

    def test_an_answer_may_begin_with_its_prompt(self):
        prompts = ["Once \N{GRINNING FACE}", "b"]
        plain = [choice["text"] for choice in self.gateway.post("/v1/completions", prompt=prompts, max_tokens=9, seed=3, n=2)[2]["choices"]]
        wanted = [prompts[i // 2] + text for i, text in enumerate(plain)]
        request = {"prompt": prompts, "max_tokens": 9, "seed": 3, "n": 2, "echo": True}
        self.assertEqual([choice["text"] for choice in self.gateway.post("/v1/completions", **request)[2]["choices"]], wanted)
        self.assertEqual(self.by_index(self.gateway.stream("/v1/completions", **request)), wanted)
        single = self.gateway.post("/v1/completions", prompt="b", max_tokens=1, echo=True)[2]["choices"][0]["text"]
        self.assertEqual(single[0], "b")
        longest = {"prompt": "\n" * 1024, "n": 128, "max_tokens": 1, "echo": True}  # 131,072 bytes of all choices
        texts = self.by_index(self.gateway.stream("/v1/completions", **longest))
        self.assertEqual((len(texts), {text[:1024] for text in texts}), (128, {"\n" * 1024}))
        for more in ({"prompt": [300, 301]}, {"prompt": "a", "logprobs": 1}, {"prompt": "a" * 1025, "n": 128},
                     {"prompt": "a", "echo": 1}):
            status, _, answer = self.gateway.post("/v1/completions", **{"max_tokens": 1, "echo": True, **more})
            self.assertEqual((status, answer["error"]["param"]), (400, "echo"), answer)

    def test_a_token_id_ends_an_answer(self):
        request = {"prompt": "a", "max_tokens": 30, "seed": 5}
        whole = self.gateway.post("/v1/completions", **request, logprobs=0)[2]["choices"][0]
        tokens = whole["logprobs"]["tokens"]
        at = next(i for i in range(5, 30) if tokens.index(tokens[i]) == i)
        (stop,) = self.gateway.post("/tokenize", content=tokens[at])[2]["tokens"]
        for stops in ([stop], [2, stop, stop]):
            answer = self.gateway.post("/v1/completions", **request, stop_token_ids=stops)[2]
            self.assertEqual((answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]),
                             ("".join(tokens[:at]), "stop"))
        for wrong, param in ([2**31], "stop_token_ids[0]"), (list(range(65)), "stop_token_ids"), ("2", "stop_token_ids"):
            status, _, answer = self.gateway.post("/v1/completions", **request, stop_token_ids=wrong)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)

    def test_models_and_health_are_told(self):
        status, _, models = self.gateway.ask("GET", "/v1/models")
        self.assertEqual((status, len(models["data"])), (200, 1))
        name = models["data"][0]["id"]
        self.assertEqual(models["data"][0]["context_length"], 1000000)
        one = self.gateway.ask("GET", "/v1/models/" + name.replace(" ", "%20"))
        self.assertEqual((one[0], one[2]["id"]), (200, name))
        self.assertEqual(self.gateway.ask("GET", "/v1/models/none")[0], 404)
        self.assertEqual(self.gateway.ask("GET", "/health/live")[0], 200)
        status, headers, body = self.gateway.ask("HEAD", "/health")
        self.assertEqual((status, body), (200, ""))
        answer = self.gateway.post("/v1/completions", prompt="a", model=name, max_tokens=1)
        self.assertEqual(answer[2]["model"], name)

    def test_anthropics_clients_are_served(self):
        request = {"messages": [{"role": "user", "content": "Hi"}], "system": "Be kind", "max_tokens": 20,
                   "temperature": 0.5}
        status, _, whole = self.gateway.post("/v1/messages", **request)
        self.assertEqual((status, whole["type"], whole["stop_reason"]), (200, "message", "max_tokens"))
        self.assertEqual(whole["usage"]["output_tokens"], 20)
        _, headers, text = self.gateway.post("/v1/messages", **request, stream=True)
        self.assertEqual(headers["Content-Type"], "text/event-stream")
        events = [event.split("\n") for event in text.strip().split("\n\n")]
        names = [event[0].removeprefix("event: ") for event in events]
        self.assertEqual(names[:2] + names[-3:], ["message_start", "content_block_start", "content_block_stop",
                                                  "message_delta", "message_stop"])
        self.assertEqual(set(names[2:-3]), {"content_block_delta"})
        data = [json.loads(event[1].removeprefix("data: ")) for event in events]
        self.assertEqual([event["type"] for event in data], names)
        self.assertEqual(data[-2]["usage"]["output_tokens"], 20)
        status, _, answer = self.gateway.post("/v1/messages", max_tokens=1, messages=[])
        self.assertEqual((status, answer["type"], answer["error"]["type"]), (400, "error", "invalid_request_error"))

    def test_ollamas_clients_are_served(self):
        name = self.gateway.ask("GET", "/api/tags")[2]["models"][0]["name"]
        options = {"num_predict": 20, "seed": 3, "num_ctx": 4096}
        for path, prompt, key in (("/api/chat", {"messages": [{"role": "user", "content": "Hi"}]}, "message"),
                                  ("/api/generate", {"prompt": "Hi"}, "response")):
            request = {"model": name + ":latest", "options": options, **prompt}
            whole = self.gateway.post(path, **request, stream=False)[2]
            _, headers, text = self.gateway.post(path, **request)
            self.assertEqual(headers["Content-Type"], "application/x-ndjson")
            lines = [json.loads(line) for line in text.splitlines()]
            parts = [line[key]["content"] if key == "message" else line[key] for line in lines]
            self.assertEqual(whole[key]["content"] if key == "message" else whole[key], "".join(parts))
            self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
            self.assertEqual((lines[-1]["done_reason"], lines[-1]["eval_count"]), ("length", 20))
        self.assertIsInstance(self.gateway.post("/api/chat", model="none", messages=[])[2]["error"], str)
        self.assertIn("version", self.gateway.ask("GET", "/api/version")[2])

    def test_an_answer_is_what_its_grammar_allows(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"enum": [1, 22]}},
                  "required": ["name", "age"], "additionalProperties": False}
        said = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
        chat = {"messages": [{"role": "user", "content": "Hi"}], "seed": 2, "max_tokens": 400}

        def text_of(path="/v1/chat/completions", **fields):
            status, _, answer = self.gateway.post(path, **chat, **fields)
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            self.assertEqual(choice["finish_reason"], "stop")
            return choice["message"]["content"]

        loose = {key: value for key, value in schema.items() if key != "additionalProperties"}
        for fields in ({"response_format": said}, {"guided_json": schema}, {"json_schema": json.dumps(schema)},
                       {"structured_outputs": {"json": schema}},
                       {"response_format": {"type": "json_object", "schema": schema}},
                       {"response_format": {"type": "json_schema", "json_schema": {"strict": True, "schema": loose}}}):
            value = json.loads(text_of(**fields))
            self.assertEqual(set(value), {"name", "age"}, fields)
            self.assertIn(value["age"], (1, 22))
        for fields in ({"regex": "[a-c]{4}x"}, {"guided_regex": "[a-c]{4}x"}, {"grammar": 'root ::= [a-c]{4} "x"'},
                       {"structured_outputs": {"grammar": 'root ::= [a-c]{4} "x"'}}):
            self.assertRegex(text_of(**fields), "^[a-c]{4}x$")
        events = self.gateway.stream("/v1/chat/completions", **chat, response_format=said)
        streamed = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
        self.assertEqual(streamed, text_of(response_format=said))
        any_object = self.gateway.post("/v1/chat/completions", **chat, response_format={"type": "json_object"})[2]
        self.assertTrue(any_object["choices"][0]["message"]["content"].startswith("{"))
        ollama = {"model": self.gateway.ask("GET", "/api/tags")[2]["models"][0]["name"], "stream": False,
                  "messages": chat["messages"], "options": {"num_predict": 400}}
        for said in (schema, loose):
            value = json.loads(self.gateway.post("/api/chat", **ollama, format=said)[2]["message"]["content"])
            self.assertEqual(set(value), {"name", "age"})
        self.assertTrue(self.gateway.post("/api/chat", **ollama, format="json")[2]["message"]["content"].startswith("{"))
        self.assertEqual(self.gateway.post("/api/chat", **ollama, format="")[0], 200)

    def test_what_is_no_grammar_is_refused_by_its_reason(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20}
        for fields, reason in (
                ({"regex": "(?=a)"}, "assertions"), ({"grammar": "root ::= x"}, 'undefined rule "x"'),
                ({"guided_json": {"type": "array", "uniqueItems": True}}, 'uniqueItems is supported where'),
                ({"regex": "a", "grammar": 'root ::= "a"'}, "already has a grammar"), ({"regex": 5}, "not a string"),
                ({"response_format": {"type": "xml"}}, "not one of text, json_object and json_schema"),
                ({"response_format": {"type": "json_schema"}}, "has no json_schema"),
                ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "has no schema"),
                ({"response_format": "json"}, "not an object with a type")):
            status, _, answer = self.gateway.post("/v1/chat/completions", **chat, **fields)
            self.assertEqual(status, 400, answer)
            self.assertIn(reason, answer["error"]["message"])
        self.assertEqual(self.gateway.post("/api/chat", model="", messages=chat["messages"], format="xml")[0], 400)

    def test_texts_become_tokens(self):
        prompt = "Once upon a time"
        tokens = self.gateway.post("/tokenize", content=prompt)[2]
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        usage = self.gateway.post("/v1/completions", prompt=tokens["tokens"], max_tokens=1)[2]["usage"]
        self.assertEqual(usage["prompt_tokens"], tokens["count"])
        self.assertEqual(self.gateway.post("/tokenize", prompt=[1])[0], 400)
        self.assertEqual(self.gateway.post("/detokenize", tokens=tokens["tokens"])[2], {"content": prompt})
        self.assertEqual(self.gateway.post("/detokenize", tokens="a")[0], 400)
        self.assertIn("vocabulary", self.gateway.post("/detokenize", tokens=[2**31 - 1])[2]["error"]["message"])

    def test_log_probabilities_come_whole_and_in_streams(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}], "seed": 4, "max_tokens": 12, "logprobs": True}
        whole = self.gateway.post("/v1/chat/completions", **chat, top_logprobs=3)[2]["choices"][0]
        tokens = whole["logprobs"]["content"]
        self.assertEqual(len(tokens), 12)
        self.assertTrue(all(len(token["top_logprobs"]) == 3 for token in tokens))
        said = b"".join(bytes(token["bytes"]) for token in tokens)
        self.assertEqual(said.decode(errors="replace"), whole["message"]["content"])
        chunks = [event["choices"][0] for event in self.gateway.stream("/v1/chat/completions", **chat, top_logprobs=3)]
        streamed = [token for chunk in chunks if chunk["logprobs"] for token in chunk["logprobs"]["content"]]
        self.assertEqual(streamed, tokens)
        bare = self.gateway.post("/v1/chat/completions", **chat)[2]["choices"][0]["logprobs"]["content"]
        self.assertEqual([token["top_logprobs"] for token in bare], [[]] * 12)
        self.assertIsNone(self.gateway.post("/v1/chat/completions", **{**chat, "logprobs": False})[2]["choices"][0]
                          ["logprobs"])
        text = {"prompt": "Once", "seed": 4, "max_tokens": 12}
        choice = self.gateway.post("/v1/completions", **text, logprobs=2)[2]["choices"][0]
        lists = choice["logprobs"]
        self.assertEqual("".join(lists["tokens"]), choice["text"])
        self.assertEqual({len(each) for each in lists.values()}, {12})
        self.assertEqual(lists["text_offset"], [len("".join(lists["tokens"][:i])) for i in range(12)])
        chunks = [event["choices"][0] for event in self.gateway.stream("/v1/completions", **text, logprobs=2)]
        for name, values in lists.items():
            self.assertEqual([value for chunk in chunks if chunk["logprobs"] for value in chunk["logprobs"][name]], values)
        self.assertEqual(self.gateway.post("/v1/completions", **text, logprobs=21)[0], 400)

    def test_metrics_count_what_was_done(self):
        def metrics():
            status, headers, text = self.gateway.ask("GET", "/metrics")
            self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, "text/plain"))
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            for line in lines:
                self.assertRegex(line, r'^[a-z_]+(\{([a-z]+="[^"]*",?)+\})? \S+$')
            return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

        before = metrics()
        self.gateway.post("/v1/completions", prompt="a", max_tokens=7)
        after = metrics()
        self.assertEqual(after["quern_generated_tokens_total"] - before["quern_generated_tokens_total"], 7)
        for name in ("time_to_first_token", "generation", "queue"):
            name = f"quern_{name}_seconds"
            self.assertEqual(after[name + "_count"] - before[name + "_count"], 1)
            self.assertEqual(after[name + '_bucket{le="+Inf"}'], after[name + "_count"])
        self.assertEqual(after["quern_up"], 1)
        self.assertTrue(any(name.startswith("quern_worker_kv_blocks{") for name in after))

    def test_dashboard_and_alerts_ask_for_metrics_that_there_are(self):
        text = self.gateway.ask("GET", "/metrics")[2]
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        known = set(kinds) | {name + end for name, kind in kinds.items() if kind == "histogram"
                              for end in ("_bucket", "_sum", "_count")}
        top = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "contrib"
        for file in ("grafana/quern.json", "prometheus/quern.rules.yml"):
            named = set(re.findall(r"\bquern_[a-z_]+", (top / file).read_text()))
            self.assertGreater(len(named), 8)
            self.assertEqual(named - known, set(), file)
        if shutil.which("promtool"):  # Debian: prometheus
            said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=WAIT)
            self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_errors_have_openais_form_and_name_the_parameter(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}]}
        for status, param, path, body in (
                (400, "temperature", "/v1/chat/completions", {**chat, "temperature": -1}),
                (400, "messages", "/v1/chat/completions", {}),
                (400, "prompt", "/v1/completions", {"stream": True}),
                (400, "messages[0].role", "/v1/chat/completions", {"messages": [{"role": "odd"}], "stream": True}),
                (400, None, "/v1/completions", {"prompt": "a", "max_tokens": 2000000, "stream": True}),
                (400, None, "/v1/completions", {"prompt": [2**31 - 1]}),
                (404, "model", "/v1/chat/completions", {**chat, "model": "gpt-4o"}),
                (404, "model", "/v1/embeddings", {"input": "a", "model": "m"}),
                (404, None, "/v1/nothing", {}),
                (405, None, "/v1/models", {})):
            answer = self.gateway.post(path, **body)
            self.assertEqual(answer[0], status, answer)
            error = answer[2]["error"]
            self.assertEqual((error["param"], error["type"]), (param, "invalid_request_error"), error)
            self.assertTrue(error["message"])
        status, headers, answer = self.gateway.ask("OPTIONS", "/v1/models")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))

    def test_a_client_that_goes_away_ends_its_request(self):
        abandoned, tokens = self.gateway.metrics()["quern_abandoned_total"], self.status()["tokens"]
        worker = self.status()["workers"][0]["pid"]
        clients = [self.gateway.raw(long_request(stream=True, max_tokens=600000))]
        self.assertIn(b"200 OK", clients[0].recv(4096))
        os.kill(worker, signal.SIGSTOP)  # so that none ends by itself
        try:
            clients += [self.gateway.raw(long_request(max_tokens=5000, **more))
                        for more in ({}, {"stream": True}, {"n": 3})]
            until(lambda: self.at_work() >= 6, "the requests run")
            for client in clients:
                client.close()
            until(lambda: self.gateway.metrics()["quern_abandoned_total"] == abandoned + 4, "all four are abandoned")
            self.nothing_runs()
        finally:
            go_on(worker)
        # Another worker would take over what nobody has ended, and end all of it.
        self.assertLess(self.status()["tokens"] - tokens, 600000 + 5 * 5000)

    def test_requests_that_come_together_are_answered_in_turn(self):
        body = json.dumps({"prompt": "a", "max_tokens": 2})
        one = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        last = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        connection = self.gateway.raw((3 * one + last).encode())
        self.assertEqual(read_all(connection).count(b"HTTP/1.1 200 OK"), 4)

    def test_a_body_may_come_in_small_pieces(self):
        body = json.dumps({"prompt": "a", "max_tokens": 2}).encode()
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                      b"Transfer-Encoding: chunked\r\n\r\n")
        for byte in body:
            connection.sendall(b"1\r\n%c\r\n" % byte)
        connection.sendall(b"0\r\n\r\n")
        self.assertIn(b"200 OK", read_all(connection))

    def test_no_broker_is_503_and_a_new_one_is_found(self):
        connection = self.gateway.raw(long_request(stream=True))
        connection.recv(4096)
        broker = child_of(self.broker.process.pid, "quern-broker")
        self.broker.end(signal.SIGKILL)  # the supervisor; the broker would finish what runs
        os.kill(broker, signal.SIGKILL)
        until(lambda: self.gateway.ask("GET", "/health")[0] == 503, "the gateway sees that the broker is gone")
        status, headers, answer = self.gateway.post("/v1/completions", prompt="a")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"), answer)
        self.assertEqual(self.gateway.ask("GET", "/health/live")[0], 200)
        connection.close()
        type(self).start_broker()
        self.gateway.ready()
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)


if __name__ == "__main__":
    main()
