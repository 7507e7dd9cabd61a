#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quern-gateway before a real pool, spoken to as HTTP clients do, and as they should not.

    test_gateway.py BUILD_FOLDER MODEL

The pool has the null device: its ids come fast, and the same for the same request."""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

BUILD, MODEL = pathlib.Path(sys.argv[1]), sys.argv[2]
WAIT = 60  # seconds until something that must happen counts as missing


def until(condition, what):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {WAIT} s")


def child_of(parent, name):
    """The pid of a child of that name."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
        except OSError:
            continue  # gone
        called, rest = rest.rsplit(") ", 1)
        if called == name and int(rest.split()[1]) == parent:
            return int(pid)
    raise AssertionError(f"{parent} has no child {name}")


def go_on(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass  # it stood still for too long, and was replaced


class Process:
    """A program with its stderr in a file."""

    def __init__(self, folder, name, *arguments):
        self.log_path = folder / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.begun = log.tell()  # behind what an earlier one of this name has said
            self.process = subprocess.Popen([str(BUILD / name), *arguments], stderr=log, stdout=log,
                                            preexec_fn=os.setpgrp)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def says(self, text):
        def look():
            if text in self.log_path.read_bytes()[self.begun:].decode(errors="replace"):
                return True
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}:\n{self.log()}")
        until(look, f"'{text}' in the log")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()


class Gateway(Process):
    def __init__(self, folder, rundir, *arguments):
        super().__init__(folder, "quern-gateway", "--connect", rundir, "--listen", "127.0.0.1:0", *arguments)
        self.tls = None
        scheme = "http://"
        if "--tls-cert" in arguments:
            scheme = "https://"
            self.tls = ssl.create_default_context(cafile=arguments[arguments.index("--tls-cert") + 1])
        self.says("ready: " + scheme)
        self.host, port = self.log().rsplit("ready: " + scheme, 1)[1].split()[0].rsplit(":", 1)
        self.port = int(port)

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=WAIT, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=WAIT)

    def ask(self, method, path, body=None, headers={}):
        """The status, the headers and the JSON (or text) of an answer."""
        connection = self.connect()
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.getheader("Content-Type", "") == "application/json" and text:
            return answer.status, answer.headers, json.loads(text)
        return answer.status, answer.headers, text.decode()

    def post(self, path, **body):
        return self.ask("POST", path, body)

    def stream(self, path, **body):
        """The events of a stream, parsed; the last must be [DONE]."""
        status, headers, text = self.ask("POST", path, {"stream": True, **body})
        assert status == 200 and headers["Content-Type"] == "text/event-stream", text
        events = text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""], events[-2:]
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]

    def raw(self, data):
        """A socket on which these bytes were sent."""
        connection = socket.create_connection((self.host, self.port), timeout=WAIT)
        connection.sendall(data)
        return connection

    def ready(self):
        until(lambda: self.ask("GET", "/health")[0] == 200, "the gateway is ready")
        until(self.has_worker, "a worker is ready")

    def has_worker(self):
        status, _, models = self.ask("GET", "/v1/models")
        return status == 401 or any(model["ready"] for model in models.get("data", []))


def read_all(connection):
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    connection.close()
    return data


def long_request(**more):
    body = json.dumps({"prompt": "x", "max_tokens": 300000, **more})
    return f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Base(unittest.TestCase):
    options = ("--stream-kb", "1000000", "--streams-mb", "1000")

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.rundir = str(cls.folder / "run")
        cls.start_broker()
        cls.gateway = Gateway(cls.folder, cls.rundir, *cls.options)
        cls.gateway.ready()

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "1000000", "--frame-us", "0",
                             "--rundir", cls.rundir)
        cls.broker.says("ready:")

    @classmethod
    def tearDownClass(cls):
        status = cls.gateway.end()
        cls.broker.end()
        log = cls.gateway.log()
        shutil.rmtree(cls.folder, ignore_errors=True)
        assert status == 0, f"the gateway ended with {status}:\n{log}"

    def status(self):
        said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--connect", self.rundir],
                              capture_output=True, timeout=WAIT, check=True)
        return json.loads(said.stdout)

    def nothing_runs(self):
        until(lambda: self.status()["running"] == 0, "every request has ended")


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

    def test_a_stop_string_ends_the_answer_before_it(self):
        request = {"prompt": "Once", "seed": 1, "max_tokens": 100, "temperature": 0.9}
        text = self.gateway.post("/v1/completions", **request)[2]["choices"][0]["text"]
        at = len(text) // 2
        choice = self.gateway.post("/v1/completions", **request, stop=[text[at:at + 3]])[2]["choices"][0]
        self.assertEqual(choice["text"], text[:text.index(text[at:at + 3])])
        self.assertEqual(choice["finish_reason"], "stop")

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

        for fields in ({"response_format": said}, {"guided_json": schema}, {"json_schema": json.dumps(schema)},
                       {"structured_outputs": {"json": schema}},
                       {"response_format": {"type": "json_object", "schema": schema}}):
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
        value = json.loads(self.gateway.post("/api/chat", **ollama, format=schema)[2]["message"]["content"])
        self.assertEqual(set(value), {"name", "age"})
        self.assertTrue(self.gateway.post("/api/chat", **ollama, format="json")[2]["message"]["content"].startswith("{"))
        self.assertEqual(self.gateway.post("/api/chat", **ollama, format="")[0], 200)

    def test_what_is_no_grammar_is_refused_by_its_reason(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20}
        for fields, reason in (
                ({"regex": "(?=a)"}, "assertions"), ({"grammar": "root ::= x"}, '"x" is not defined'),
                ({"guided_json": {"type": "array", "uniqueItems": True}}, '"uniqueItems" is not supported'),
                ({"regex": "a", "grammar": 'root ::= "a"'}, "has a grammar already"), ({"regex": 5}, "not a string"),
                ({"response_format": {"type": "xml"}}, "none of text, json_object and json_schema"),
                ({"response_format": {"type": "json_schema"}}, "has no json_schema"),
                ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "has no schema"),
                ({"response_format": "json"}, "no object with a type")):
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
        top = pathlib.Path(__file__).resolve().parent.parent.parent / "contrib"
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
                (400, None, "/v1/embeddings", {"input": "a", "model": "m"}),
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
        worker = self.status()["workers"][0]["pid"]
        clients = [self.gateway.raw(long_request(stream=True, max_tokens=600000))]
        self.assertIn(b"200 OK", clients[0].recv(4096))
        os.kill(worker, signal.SIGSTOP)  # so that none ends by itself
        try:
            clients += [self.gateway.raw(long_request(max_tokens=5000, **more))
                        for more in ({}, {"stream": True}, {"n": 3})]
            until(lambda: self.status()["running"] >= 5, "the requests run")
            for client in clients:
                client.close()
            self.nothing_runs()
        finally:
            go_on(worker)

    def test_requests_that_come_together_are_answered_in_turn(self):
        body = json.dumps({"prompt": "a", "max_tokens": 2})
        one = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        last = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection = self.gateway.raw((3 * one + last).encode())
        self.assertEqual(read_all(connection).count(b"HTTP/1.1 200 OK"), 4)

    def test_a_body_may_come_in_small_pieces(self):
        body = json.dumps({"prompt": "a", "max_tokens": 2}).encode()
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
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


class ThePage(Base):
    def files(self):
        """Paths of what the page consists of: what it names, and what those name."""
        found, names = [], ["/"]
        while names:
            path = names.pop()
            found.append(path)
            text = self.gateway.ask("GET", path)[2]
            named = re.findall(r'(?:src|href)="(page/[^"]+)"', text) + re.findall(r'from "\./([^"]+)"', text)
            names += {f"/page/{name.removeprefix('page/')}" for name in named} - {*found, *names}
        return found

    def test_every_file_of_it_is_there_and_is_not_sent_twice(self):
        types = {"/": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
                 ".svg": "image/svg+xml"}
        paths = self.files()
        self.assertGreater(len(paths), 8)
        for path in paths:
            status, headers, text = self.gateway.ask("GET", path)
            self.assertEqual((status, headers["Content-Type"]), (200, types[path if path == "/" else path[path.rindex("."):]]))
            self.assertEqual(headers["Cache-Control"], "no-cache")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertRegex(headers["ETag"], r'^"[0-9a-f]{16}"$')
            head = self.gateway.ask("HEAD", path)
            self.assertEqual((head[0], head[1]["Content-Length"], head[2]), (200, str(len(text.encode())), ""))
            self.assertEqual(head[1]["ETag"], headers["ETag"])
            again = self.gateway.ask("GET", path, headers={"If-None-Match": f'"other", W/{headers["ETag"]}'})
            self.assertEqual((again[0], again[1]["ETag"], again[2]), (304, headers["ETag"], ""))
            self.assertEqual(self.gateway.ask("GET", path, headers={"If-None-Match": '"other"'})[2], text)

    def test_a_connection_goes_on_behind_what_was_not_sent_twice(self):
        etag = self.gateway.ask("GET", "/")[1]["ETag"]
        connection = self.gateway.connect()
        for _ in range(3):
            connection.request("GET", "/", headers={"If-None-Match": etag})
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.read()), (304, b""))
        connection.close()

    def test_it_may_run_nothing_but_its_own_files(self):
        for path in self.files():
            policy = dict(part.strip().split(" ", 1) for part in
                          self.gateway.ask("GET", path)[1]["Content-Security-Policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertEqual({policy[kind] for kind in ("script-src", "style-src", "connect-src", "img-src")}, {"'self'"})
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            self.assertEqual(policy["frame-ancestors"], "'none'")
        page = self.gateway.ask("GET", "/")[2]
        self.assertNotRegex(page, r"<script(?![^>]*\bsrc=)|\son\w+=|style=")
        self.assertNotRegex(page, r'(?:src|href)="(?:[a-z]+:|/)')

    def test_nothing_else_is_there(self):
        for path in ("/page/", "/page/none.js", "/page/../main.c", "/page/page.css/", "/page", "/index.html"):
            status, headers, answer = self.gateway.ask("GET", path)
            self.assertEqual((status, answer["error"]["code"]), (404, "not_found"), path)
        status, headers, _ = self.gateway.ask("POST", "/", "x")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))

    def test_the_status_is_what_the_command_says(self):
        self.gateway.post("/v1/completions", prompt="a", max_tokens=5)
        self.nothing_runs()

        def same():
            told, said = self.gateway.ask("GET", "/status")[2], self.status()
            self.assertLess(abs(told.pop("time_ms") / 1000 - time.time()), WAIT)
            self.assertEqual((told.keys(), told["workers"][0].keys()), (said.keys(), said["workers"][0].keys()))
            # The command is a client more while it asks.
            changing = {"sessions": 0}
            return said["tokens"] >= 5 and {**told, **changing} == {**said, **changing}
        until(same, "both say the same")

    def test_there_is_no_status_of_a_pool_that_is_gone(self):
        folder = self.folder / "lonely"
        folder.mkdir()
        lonely = Gateway(folder, str(folder / "nowhere"))
        self.addCleanup(lonely.end)
        status, headers, answer = lonely.ask("GET", "/status")
        self.assertEqual((status, headers["Retry-After"], answer["error"]["code"]), (503, "1", "unavailable"))
        self.assertEqual(lonely.ask("GET", "/")[0], 200)


class Bounds(Base):
    options = ("--request-seconds", "3", "--body-kb", "16", "--stream-kb", "64", "--connections", "40")

    def still_serves(self):
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)

    def test_who_reads_too_slowly_is_cut_off_and_nobody_else(self):
        slow = self.gateway.raw(long_request(stream=True))
        events = self.gateway.stream("/v1/completions", prompt="b", max_tokens=2000)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.gateway.says("is cut off: the client reads too slowly")
        self.nothing_runs()
        self.assertNotIn(b"[DONE]", read_all(slow))

    def test_a_body_that_does_not_come_is_not_waited_for(self):
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
        waiting = [self.gateway.raw(head), self.gateway.raw(b"POST /v1/comp"), self.gateway.raw(b"")]
        for connection in waiting:
            self.assertEqual(read_all(connection), b"")
        self.still_serves()

    def test_a_large_body_is_413(self):
        status, _, answer = self.gateway.ask("POST", "/v1/completions", "x" * 100000)
        self.assertEqual((status, answer["error"]["type"]), (413, "invalid_request_error"))
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                                      b"Content-Length: 100000\r\n\r\n")
        self.assertIn(b" 413 ", read_all(connection).split(b"\r\n")[0])
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                      b"Content-Length: 1000000000000\r\n\r\n")
        self.assertIn(b" 413 ", read_all(connection).split(b"\r\n")[0])
        self.still_serves()

    def test_a_body_without_end_is_cut_off(self):
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                      b"Transfer-Encoding: chunked\r\n\r\n")
        with self.assertRaises(OSError):
            for _ in range(100000):
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        connection.close()
        self.still_serves()

    def test_heads_are_bounded(self):
        headers = b"".join(b"X-%d: y\r\n" % i for i in range(10000))
        for head in (b"GET /health HTTP/1.1\r\n" + headers + b"\r\n",
                     b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\n\r\n",
                     b"\0\1\2\3" * 1000 + b"\r\n\r\n",
                     b"GET /health HTTP/9.9\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: odd\r\n\r\n"):
            try:
                answer = read_all(self.gateway.raw(head))
            except OSError:
                answer = b""
            self.assertNotIn(b" 200 ", answer[:20], head[:40])
        self.still_serves()

    def test_too_many_connections_do_not_end_it(self):
        held = [socket.create_connection((self.gateway.host, self.gateway.port)) for _ in range(100)]
        for connection in held:
            connection.close()
        until(lambda: self.gateway.ask("GET", "/health")[0] == 200, "it serves again")


class Keys(Base):
    SECRET = "sk-0123456789abcdef"

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {cls.SECRET} requests=1 tokens=100\nbob sk-fedcba9876543210\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file), "--cors", "https://chat.example")
        super().setUpClass()
        shutil.rmtree(file.parent)

    def ask(self, key, **body):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return self.gateway.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2, **body}, headers)

    def test_only_who_has_a_key_is_served(self):
        for key in (None, "", "sk-0123456789abcdeg", self.SECRET + "0", self.SECRET[:-1]):
            status, headers, answer = self.ask(key)
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(answer["error"]["code"], "invalid_api_key")
        self.assertEqual(self.ask(self.SECRET)[0], 200)
        self.assertEqual(self.gateway.ask("GET", "/v1/models")[0], 401)
        self.assertEqual(self.gateway.ask("GET", "/v1/models", headers={"x-api-key": self.SECRET})[0], 200)
        self.assertEqual(self.gateway.ask("GET", "/status")[0], 401)
        self.assertEqual(self.gateway.ask("GET", "/status", headers={"Authorization": f"Bearer {self.SECRET}"})[0], 200)
        for path in ("/health", "/", "/page/main.js"):
            self.assertEqual(self.gateway.ask("GET", path)[0], 200)
        self.assertNotIn(self.SECRET, self.gateway.log())

    def test_a_key_has_no_more_than_it_may(self):
        self.assertEqual(self.ask(self.SECRET, max_tokens=101)[0], 400)
        self.assertEqual(self.ask(self.SECRET, max_tokens=51, n=2)[0], 400)
        self.assertEqual(self.ask("sk-fedcba9876543210", max_tokens=101)[0], 200)
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            body = json.dumps({"prompt": "x", "max_tokens": 50})
            first = self.gateway.raw(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                                     f"{self.SECRET}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            until(lambda: self.status()["running"] == 1, "the request runs")
            status, headers, _ = self.ask(self.SECRET)
            self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        finally:
            go_on(worker)
        self.assertIn(b" 200 OK", first.recv(4096))
        first.close()
        self.assertEqual(self.ask(self.SECRET)[0], 200)

    def test_pages_of_one_origin_may_ask(self):
        for path in ("/v1/chat/completions", "/v1/models"):
            status, headers, _ = self.gateway.ask("OPTIONS", path)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "https://chat.example"))
            self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        self.assertEqual(self.ask(None)[1]["Access-Control-Allow-Origin"], "https://chat.example")


class RequestLog(Base):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.file = cls.place / "requests.log"
        cls.options = ("--request-log", str(cls.file))
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.place, ignore_errors=True)

    def lines(self, file=None):
        return [json.loads(line) for line in (file or self.file).read_text().splitlines()]

    def metric(self, name):
        text = self.gateway.ask("GET", "/metrics")[2]
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def reopen(self):
        said = self.gateway.log().count("opened anew")
        self.gateway.process.send_signal(signal.SIGHUP)
        until(lambda: self.gateway.log().count("opened anew") > said, "the log is opened anew")

    def test_1_each_request_has_a_line_with_its_phases(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        self.file.write_text("")
        body = {"prompt": "a secret", "max_tokens": 5, "n": 2}
        self.gateway.ask("POST", "/v1/completions", body, {"traceparent": trace})
        self.gateway.ask("POST", "/v1/completions", {"prompt": 1}, {"traceparent": "00-0-0-00"})
        self.gateway.stream("/v1/completions", prompt="b", max_tokens=3)
        self.gateway.ask("GET", "/v1/models")
        self.gateway.ask("GET", "/health")
        until(lambda: len(self.lines()) >= 4, "four lines")
        first, refused, stream, models = self.lines()
        self.assertEqual((first["traceparent"], first["status"], first["path"]), (trace, 200, "/v1/completions"))
        self.assertEqual((first["choices"], first["output_tokens"], first["finish"], first["stream"]),
                         (2, 10, "length", False))
        for phase in ("queue_ms", "prefill_ms", "prepare_ms", "wait_ms", "lookup_ms", "decode_ms", "first_token_ms"):
            self.assertGreaterEqual(first["duration_ms"] + 1, first[phase])
            self.assertGreaterEqual(first[phase], 0)
        self.assertGreater(first["first_token_ms"], 0)
        self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual((refused["status"], refused["traceparent"]), (400, None))
        self.assertNotIn("choices", refused)
        self.assertEqual((stream["stream"], stream["output_tokens"]), (True, 3))
        self.assertEqual((models["method"], models["path"], models["client_gone"]), ("GET", "/v1/models", False))
        self.assertNotIn("secret", self.file.read_text())

    def test_2_a_client_that_goes_away_is_in_it(self):
        connection = self.gateway.raw(long_request(stream=True))
        self.assertIn(b"200 OK", connection.recv(4096))
        connection.close()
        line = until(lambda: [line for line in self.lines() if line["client_gone"] and "choices" in line], "its line")[-1]
        self.assertEqual((line["finish"], line["status"]), (None, 200))

    def test_3_it_is_rotated_by_a_hangup(self):
        before, moved = len(self.lines()), self.file.with_suffix(".1")
        self.file.rename(moved)
        self.gateway.ask("GET", "/v1/models")
        until(lambda: len(self.lines(moved)) == before + 1, "the line is in the file that was moved")
        self.reopen()
        self.gateway.ask("GET", "/v1/models")
        until(lambda: len(self.lines()) == 1, "a line in the new file")
        self.assertEqual(len(self.lines(moved)), before + 1)

    def test_4_what_cannot_be_written_is_counted_and_said_once(self):
        self.file.unlink()
        self.file.symlink_to("/dev/full")
        self.reopen()
        for _ in range(3):
            self.assertEqual(self.gateway.ask("GET", "/v1/models")[0], 200)
        until(lambda: self.metric("quern_request_log_lost_total") == 3, "they are counted")
        self.assertEqual(self.gateway.log().count("requests are not written down"), 1)
        self.file.unlink()
        self.reopen()
        self.gateway.ask("GET", "/v1/models")
        self.gateway.says("written down again; 3 are not there")
        self.file.unlink()
        self.file.mkdir()  # now it cannot be opened: the old one is written on
        written = self.metric("quern_request_log_lines_total")
        self.gateway.process.send_signal(signal.SIGHUP)
        self.gateway.says("requests are written to the file that was open")
        self.gateway.ask("GET", "/v1/models")
        until(lambda: self.metric("quern_request_log_lines_total") == written + 1, "it is written")

    def test_5_a_file_that_cannot_be_opened_ends_the_start(self):
        said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--request-log", "/nowhere/x"],
                              capture_output=True, text=True, timeout=WAIT)
        self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1))
        self.assertIn("/nowhere/x", said.stderr)
        with tempfile.TemporaryDirectory(prefix="quern-gw-") as folder:
            os.mkfifo(folder + "/pipe")  # that nobody reads
            said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--request-log", folder + "/pipe"],
                                  capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(said.returncode, 1)
            self.assertIn(folder + "/pipe", said.stderr)


def make_certificate(cert, key):
    """Writes a certificate of 127.0.0.1 for itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                    "-out", cert], check=True, capture_output=True)
    os.chmod(key, 0o600)


@unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
class Tls(Base):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.cert, cls.key = str(cls.place / "cert.pem"), str(cls.place / "key.pem")
        make_certificate(cls.cert, cls.key)
        cls.options = ("--tls-cert", cls.cert, "--tls-key", cls.key, "--request-seconds", "3", "--body-kb", "16",
                       "--stream-kb", "64")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.place, ignore_errors=True)

    def connected(self):
        plain = socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT)
        return self.gateway.tls.wrap_socket(plain, server_hostname=self.gateway.host)

    def test_it_serves_whole_answers_and_streams(self):
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)
        events = self.gateway.stream("/v1/completions", prompt="b", max_tokens=200)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        threads = [threading.Thread(target=lambda: self.gateway.stream("/v1/completions", prompt="c", max_tokens=500))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        self.assertEqual(self.gateway.ask("POST", "/v1/completions", "x" * 100000)[0], 413)

    def test_who_does_not_shake_hands_is_not_waited_for(self):
        silent, half = self.gateway.raw(b""), self.gateway.raw(b"\x16\x03\x01\x02\x00\x01")
        plain = self.gateway.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        for connection in (silent, half, plain):
            self.assertNotIn(b"200 OK", read_all(connection))
        self.assertEqual(self.gateway.ask("GET", "/health")[0], 200)

    def test_a_slow_reader_is_cut_off_and_one_that_leaves_ends_its_request(self):
        slow = self.connected()
        slow.sendall(long_request(stream=True))
        self.gateway.says("is cut off: the client reads too slowly")
        slow.close()
        leaving = self.connected()
        leaving.sendall(long_request(stream=True))
        self.assertIn(b"200 OK", leaving.recv(4096))
        leaving.close()
        self.nothing_runs()

    def test_old_versions_are_refused(self):
        context = ssl.create_default_context(cafile=self.cert)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT) as plain:
            with self.assertRaises(OSError):
                context.wrap_socket(plain, server_hostname=self.gateway.host)

    def test_a_bad_certificate_ends_the_start_with_the_reason(self):
        def start(cert, key):
            said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--tls-cert", cert,
                                   *(["--tls-key", key] if key else [])], capture_output=True, text=True, timeout=WAIT)
            return said.returncode, said.stderr
        status, said = start(self.cert, "/nowhere")
        self.assertEqual((status, said.count("\n")), (1, 1))
        self.assertIn("/nowhere", said)
        self.assertEqual(start(self.key, self.cert)[0], 1)
        open_key = str(self.place / "open.pem")
        shutil.copy(self.key, open_key)
        os.chmod(open_key, 0o644)
        self.assertIn("everybody can read", start(self.cert, open_key)[1])
        self.assertEqual(start(self.cert, None)[0], 2)


class Served(unittest.TestCase):
    """quern serve --http."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def serve(self, *arguments):
        return Process(self.folder, "quern-broker", MODEL, "--device", "null", "--rundir", self.rundir, *arguments)

    def addresses(self, pool):
        return [line.rsplit("ready: ", 1)[1] for line in pool.log().splitlines() if "ready: http" in line]

    def get(self, url):
        try:
            with urllib.request.urlopen(url + "/health", timeout=WAIT) as answer:
                return answer.status
        except (urllib.error.URLError, OSError):
            return 0

    def test_it_is_started_watched_and_ended(self):
        pool = self.serve("--http", "127.0.0.1:0")
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        until(lambda: self.get(url) == 200, "it serves")
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGKILL)
        url = until(lambda: self.addresses(pool)[1:], "another one listens")[0]
        until(lambda: self.get(url) == 200, "it serves again")
        self.assertEqual(pool.end(), 0, pool.log())
        self.assertEqual(self.get(url), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_its_options_reach_it(self):
        cert, key, log = (str(self.folder / name) for name in ("cert.pem", "key.pem", "requests"))
        make_certificate(cert, key)
        pool = self.serve("--http", "127.0.0.1:0", "--http-tls-cert", cert, "--http-tls-key", key, "--http-log", log)
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        self.assertTrue(url.startswith("https://"), url)
        context = ssl.create_default_context(cafile=cert)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(url + "/missing", timeout=WAIT, context=context)
        missing.exception.close()
        line = json.loads(until(lambda: pathlib.Path(log).read_text(), "a line of the log"))
        self.assertEqual((line["path"], line["status"]), ("/missing", 404))
        os.rename(log, log + ".1")
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGHUP)
        until(lambda: os.path.exists(log), "the log is opened anew")
        self.assertEqual(pool.end(), 0, pool.log())
        for wrong in (("--http-log", log), ("--http", "127.0.0.1:0", "--http-tls-cert", cert)):
            self.assertEqual(self.serve(*wrong).process.wait(WAIT), 2)

    def test_what_cannot_be_served_ends_the_pool_with_the_reason(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            pool = self.serve("--http", f"127.0.0.1:{taken.getsockname()[1]}")
            self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("Address already in use", pool.log())
        pool = self.serve("--http", "0.0.0.0:0")
        self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("give a file of keys", pool.log())

    def test_a_build_without_gateway_says_so(self):
        alone = self.folder / "quern-broker"
        shutil.copy(BUILD / "quern-broker", alone)
        said = subprocess.run([alone, MODEL, "--rundir", self.rundir, "--http", "127.0.0.1:0"], capture_output=True,
                              text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertIn("libmicrohttpd", said.stderr)


class Draining(Base):
    def test_a_signal_lets_streams_end_and_takes_nothing_new(self):
        events = []
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)  # it is not to end before the gateway was told
        reader = threading.Thread(target=lambda: events.extend(
            self.gateway.stream("/v1/completions", prompt="a", max_tokens=20000)))
        reader.start()
        try:
            until(lambda: self.status()["running"] == 1, "the stream runs")
            self.gateway.process.send_signal(signal.SIGTERM)
            self.gateway.says("no new requests")
        finally:
            go_on(worker)
        with self.assertRaises(OSError):
            self.gateway.ask("GET", "/health")
        reader.join(WAIT)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.gateway.process.wait(WAIT), 0)

    @classmethod
    def tearDownClass(cls):
        cls.gateway.process.kill()
        cls.broker.end()
        shutil.rmtree(cls.folder, ignore_errors=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
