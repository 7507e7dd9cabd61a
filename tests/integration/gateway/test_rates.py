#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Limits of a key a minute and a day, counted by the pool; and the id by which a request is found everywhere."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from pool import BUILD, MODEL, WAIT, Base, Gateway, Process, child_of, main, read_all, until

NAMES = ("ada", "bob", "cy", "di", "eve", "fay", "gil", "hal")
KEYS = {name: f"sk-0123456789abcde-{name}" for name in NAMES}
LIMITS = {"ada": "rpm=3", "bob": "tpm=1000", "cy": "", "di": "rpm=2", "eve": "rpd=5 rpm=60", "fay": "rpm=4",
          "gil": "tpm=100000 rpm=100", "hal": "rpm=2"}
MADE = re.compile(r"^req_[0-9a-f]{32}$")


class Limited(Base):
    more = ()

    @classmethod
    def setUpClass(cls):
        cls.secrets = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.keys = cls.secrets / "keys"
        cls.keys.write_text("".join(f"{name} {KEYS[name]} {LIMITS[name]}\n" for name in NAMES))
        cls.keys.chmod(0o600)
        cls.options = ("--keys", str(cls.keys), *Base.options, *cls.more)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.secrets)

    @classmethod
    def start_broker(cls):
        os.environ["QUERN_LOG"] = "debug"
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "1000000", "--frame-us", "0",
                             "--rundir", cls.rundir)
        del os.environ["QUERN_LOG"]
        cls.broker.says("ready:")

    def ask(self, key, path="/v1/completions", gateway=None, headers={}, **body):
        body = {"prompt": [300, 301], "max_tokens": 1, **body} if path == "/v1/completions" else body
        return (gateway or self.gateway).ask("POST", path, body, {"Authorization": f"Bearer {KEYS[key]}", **headers})


class Rates(Limited):
    def test_so_many_requests_and_then_429(self):
        for left in (3, 2, 1):
            status, headers, answer = self.ask("ada")
            self.assertEqual(status, 200, answer)
            self.assertEqual(headers["x-ratelimit-limit-requests"], "3")
            self.assertEqual(headers["x-ratelimit-remaining-requests"], str(left - 1))
            self.assertRegex(headers["x-ratelimit-reset-requests"], r"^(1m0s|[0-9.]+s)$")
            self.assertIsNone(headers["x-ratelimit-limit-tokens"])
        status, headers, answer = self.ask("ada")
        self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertIn("the limit of 3 requests a minute is reached (rpm)", answer["error"]["message"])
        self.assertTrue(15 <= int(headers["Retry-After"]) <= 20, headers["Retry-After"])
        self.assertEqual(headers["x-ratelimit-remaining-requests"], "0")
        status, headers, _ = self.ask("ada", stream=True)
        self.assertEqual((status, headers["x-ratelimit-limit-requests"]), (429, "3"))
        status, headers, _ = self.ask("ada", "/v1/messages", max_tokens=1, messages=[{"role": "user", "content": "Hi"}])
        self.assertEqual((status, headers["anthropic-ratelimit-requests-remaining"]), (429, "0"))
        self.assertRegex(headers["anthropic-ratelimit-requests-reset"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(self.ask("cy")[0], 200)  # who has no limits
        self.assertIsNone(self.ask("cy")[1]["x-ratelimit-limit-requests"])

    def test_all_answers_of_one_request_count_as_one(self):
        for left in (1, 0):
            status, headers, answer = self.ask("di", n=4)
            self.assertEqual((status, len(answer["choices"])), (200, 4))
            self.assertEqual(headers["x-ratelimit-remaining-requests"], str(left))
        self.assertEqual(self.ask("di", n=4)[0], 429)

    def test_all_prompts_of_one_request_count_as_one(self):
        before = int(self.ask("gil")[1]["x-ratelimit-remaining-requests"])
        status, headers, answer = self.ask("gil", prompt=["a", "b", "c"], n=2)
        self.assertEqual((status, len(answer["choices"])), (200, 6))
        self.assertIn(int(headers["x-ratelimit-remaining-requests"]), (before - 1, before))  # one may have come back

    def test_tokens_of_prompts_and_answers_are_counted(self):
        status, headers, answer = self.ask("bob", prompt=list(range(300, 400)), max_tokens=200, ignore_eos=False)
        self.assertEqual(status, 200, answer)
        self.assertEqual((headers["x-ratelimit-limit-tokens"], headers["x-ratelimit-remaining-tokens"]), ("1000", "900"))
        used = answer["usage"]["total_tokens"]
        status, headers, answer = self.ask("bob", prompt=list(range(300, 400)), max_tokens=2000)
        self.assertEqual(status, 200, answer)  # what runs is not stopped
        left = int(headers["x-ratelimit-remaining-tokens"])
        self.assertTrue(900 - used <= left <= 1000 - used, (left, used))
        status, headers, answer = self.ask("bob")
        self.assertEqual(status, 429, answer)
        self.assertIn("1000 tokens a minute is reached (tpm)", answer["error"]["message"])
        self.assertEqual(headers["x-ratelimit-remaining-tokens"], "0")
        self.assertGreater(int(headers["Retry-After"]), 10)

    def test_of_a_minute_and_a_day_the_nearer_one_is_told(self):
        self.assertEqual(self.ask("eve")[1]["x-ratelimit-limit-requests"], "5")

    def test_counts_outlive_the_broker_and_are_those_of_all_gateways(self):
        other = Gateway(self.folder, self.rundir, *self.options)
        try:
            other.ready()
            self.assertEqual(self.ask("fay")[1]["x-ratelimit-remaining-requests"], "3")
            self.assertEqual(self.ask("fay", gateway=other)[1]["x-ratelimit-remaining-requests"], "2")
            before = self.status()
            os.kill(before["broker_pid"], signal.SIGKILL)
            until(lambda: self.status()["boot"] > before["boot"], "the next broker serves")
            self.ask("eve")  # the gateway is at the next broker: an answer that one admitted and another ended has no counts
            status, headers, answer = self.ask("fay")
            self.assertEqual((status, headers["x-ratelimit-remaining-requests"]), (200, "1"), answer)
        finally:
            other.end()

    def test_a_stream_has_the_headers_too(self):
        status, headers, _ = self.ask("gil", stream=True)
        self.assertEqual((status, headers["x-ratelimit-limit-requests"], headers["x-ratelimit-limit-tokens"]),
                         (200, "100", "100000"))


class Embedded(Limited):
    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "cpu", "--ctx", "256", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def test_all_inputs_of_one_request_count_as_one(self):
        for left in (1, 0):
            status, headers, answer = self.ask("hal", "/v1/embeddings", input=["a", "b", "c"])
            self.assertEqual(status, 200, answer)
            self.assertEqual(headers["x-ratelimit-remaining-requests"], str(left))
        status, headers, answer = self.ask("hal", "/v1/embeddings", input=["a", "b", "c"])
        self.assertEqual((status, headers["x-ratelimit-remaining-requests"]), (429, "0"), answer)


class Ids(Limited):
    @classmethod
    def setUpClass(cls):
        cls.log_folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.request_log = cls.log_folder / "requests"
        cls.more = ("--request-log", str(cls.request_log))
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.log_folder)

    def test_one_id_finds_a_request_everywhere(self):
        name = "my-request/1"
        asking = threading.Thread(target=self.ask, args=("cy",),
                                  kwargs={"max_tokens": 500000, "headers": {"x-request-id": name}})
        asking.start()

        def look():
            said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--request", name, "--connect", self.rundir],
                                  capture_output=True, timeout=WAIT, check=True)
            return json.loads(said.stdout)["requests"]
        found = until(look, "the request is running")
        self.assertEqual([(each["request_id"], each["worker"]) for each in found], [(name, "worker-0")])
        said = subprocess.run([str(BUILD / "quern"), "status", "--requests", "--connect", self.rundir],
                              capture_output=True, timeout=WAIT, check=True).stdout.decode()
        self.assertRegex(said, rf"{found[0]['id']}  running     worker-0 .*  {name}\n")
        asking.join()
        self.assertIn(f"request {found[0]['id'][:8]} {name}: running -> ended", self.broker.log())
        self.assertIn(name, [json.loads(line)["request_id"] for line in self.request_log.read_text().splitlines()])
        self.assertEqual(look(), [])

    def test_it_stands_in_every_answer(self):
        taken = self.ask("cy", headers={"X-Request-Id": "abc.1"})[1]
        self.assertEqual((taken["x-request-id"], taken["request-id"]), ("abc.1", None))
        self.assertEqual(self.ask("cy", "/v1/messages", max_tokens=1, messages=[{"role": "user", "content": "Hi"}],
                                  headers={"X-Request-Id": "abc.2"})[1]["request-id"], "abc.2")
        for answer in (self.ask("cy"), self.ask("cy", stream=True), self.ask("cy", temperature="hot"),
                       self.gateway.ask("GET", "/nowhere"), self.gateway.ask("GET", "/health"),
                       self.gateway.ask("POST", "/v1/completions", {"prompt": "x"})):
            self.assertRegex(answer[1]["x-request-id"], MADE)

    def test_a_bad_one_is_replaced(self):
        for bad in ("two words", "x" * 129, "x" * 3000, "gr\u00f6\u00dfe"):
            self.assertRegex(self.ask("cy", headers={"x-request-id": bad})[1]["x-request-id"], MADE)
        head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS['cy']}\r\nConnection: close\r\n"
        folded = read_all(self.gateway.raw(f"{head}x-request-id: a\r\n b\r\n\r\n".encode()))
        self.assertNotIn(b"x-request-id: a", folded.lower())
        huge = read_all(self.gateway.raw(f"{head}x-request-id: {'x' * 10000}\r\n\r\n".encode()))
        self.assertRegex(huge, rb"(?i)^HTTP/1.1 (200 OK\r\n(.*\r\n)*x-request-id: req_|431 )")


class Reloaded(Base):
    """A file of keys that is half valid: nothing of it is taken."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.rundir = str(cls.folder / "run")
        cls.keys = cls.folder / "keys"
        cls.write(f"ada {KEYS['ada']} rpm=5\n")
        cls.broker = Process(cls.folder, "quern", "serve", MODEL, "--device", "null", "--rundir", cls.rundir,
                             "--http", "127.0.0.1:0", "--http-keys", str(cls.keys))
        cls.broker.says("ready: http://")
        port = re.search(r"ready: http://127.0.0.1:(\d+)", cls.broker.log())[1]
        cls.gateway = object.__new__(Gateway)
        cls.gateway.host, cls.gateway.port, cls.gateway.tls = "127.0.0.1", int(port), None
        cls.gateway.ready()

    @classmethod
    def tearDownClass(cls):
        cls.broker.end()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def write(cls, text):
        cls.keys.write_text(text)
        cls.keys.chmod(0o600)

    def reload(self):
        return subprocess.run([str(BUILD / "quern"), "reload", "--gateway", "--rundir", self.rundir],
                              capture_output=True, timeout=WAIT, text=True)

    def left(self, name):
        status, headers, _ = self.gateway.ask("POST", "/v1/completions", {"prompt": [300], "max_tokens": 1},
                                              {"Authorization": f"Bearer {KEYS[name]}"})
        return status, headers["x-ratelimit-remaining-requests"]

    def test_nothing_of_it_is_taken(self):
        self.assertEqual(self.left("ada"), (200, "4"))
        for bad in ("rpm=0", "rpm=-1", "tpd=99999999999999999999", "rpm=1.5", "rpm="):
            self.write(f"ada {KEYS['ada']} rpm=100\nbob {KEYS['bob']}\ncy {KEYS['cy']} {bad}\n")
            said = self.reload()
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("keys:3: ", said.stderr)
        self.assertEqual(self.left("bob")[0], 401)
        self.assertEqual(self.left("ada"), (200, "3"))
        self.write(f"ada {KEYS['ada']} rpm=100\nbob {KEYS['bob']}\n")
        self.assertEqual(self.reload().returncode, 0)
        self.assertEqual(self.left("bob"), (200, None))
        self.assertEqual(self.left("ada"), (200, "97"))  # what was used stays used


if __name__ == "__main__":
    main()
