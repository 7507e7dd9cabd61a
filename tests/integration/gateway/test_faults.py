#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A gateway in which one call fails, at one place after the other: every answer is the one that it always is, or there
is a verdict, or the connection ends before the answer does; nothing crashes, and afterwards all is as before.

A few places of each kind, spread over all that are passed; with $QUERN_FAULTS_ALL each of them, and with
$QUERN_FAULTS_FROM=memory:100 those of a kind from one on."""

import http.client
import json
import os
import pathlib
import re
import socket
import unittest

from pool import Base, Gateway, Process, main, until

MESSAGES = [{"role": "user", "content": "Why?"}]
TOOL = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object", "properties": {
    "place": {"type": "string"}}, "required": ["place"]}}}
REQUESTS = [
    ("GET", "/health", None),
    ("GET", "/v1/models", None),
    ("GET", "/page/main.js", None),
    ("POST", "/v1/completions", {"prompt": "a", "max_tokens": 20, "seed": 1, "logprobs": 2, "n": 2}),
    ("POST", "/v1/completions", {"prompt": "a", "max_tokens": 20, "seed": 1, "stream": True}),
    ("POST", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 10, "seed": 1, "stream": True,
                                      "stream_options": {"include_usage": True}}),
    ("POST", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 10, "seed": 1, "stop": ["x y z"],
                                      "logit_bias": {"3": 1}, "tools": [TOOL], "tool_choice": "required"}),
    ("POST", "/v1/messages", {"messages": MESSAGES, "system": "Be brief.", "max_tokens": 1, "stream": True}),
    ("POST", "/api/chat", {"messages": MESSAGES, "options": {"num_predict": 10, "seed": 1}}),
    ("POST", "/v1/embeddings", {"input": ["a", "b"]}),
    ("POST", "/tokenize", {"content": "some text"}),
    ("POST", "/v1/completions", {"prompt": 7}),
]
# What is another in each answer; text too where the request says no seed.
# What is cached of a prompt depends on what was asked before.
CHANGES = re.compile(r'"(id|created|created_at|timings|[a-z_]*_duration|loaded_at|pid|uptime|cached_tokens|input_tokens'
                     r'|cache_[a-z_]*)": ?("[^"]*"|[0-9.e+-]+|\{[^}]*\})')
TEXT = re.compile(r'"text":"(?:[^"\\]|\\.)*"')
# A stream's head goes at the latest after a moment, with zeros where the pool has not counted the prompt by then.
HEAD_USAGE = re.compile(r'("type":"message_start".*?"stop_sequence":null),"usage":\{[^}]*\}')


class Faulty(Gateway):
    """On a port of its own choice, for the line that tells it may be the one that cannot be written."""

    def __init__(self, folder, rundir, *arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.host, self.port = free.getsockname()
        self.tls = None
        Process.__init__(self, folder, "tests/integration/faults/quern-gateway", "--connect", rundir, "--listen",
                         f"{self.host}:{self.port}", *arguments)

    def answers(self):
        """None while it starts; whether it does then. Connected is not yet served: it may end before that."""
        if self.process.poll() is not None:
            return "ended"
        try:
            with socket.create_connection((self.host, self.port), timeout=60) as probe:
                probe.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return "serves" if probe.recv(1) else None
        except OSError:
            return None


class Faults(Base):
    def once(self, gateway, method, path, body):
        """What came: its status, its text; or None where the connection ended before."""
        try:
            connection = gateway.connect()
            connection.request(method, path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
        except (OSError, http.client.HTTPException):
            return None
        text = HEAD_USAGE.sub(r"\1", CHANGES.sub("", text))
        return answer.status, TEXT.sub("", text) if path == "/v1/messages" else text

    def check(self, came, expected, what):
        """The same, or a verdict."""
        if came is None or came == expected:
            return came == expected
        status, text = came
        if status >= 400:
            said = json.loads(text)
            self.assertTrue(said.get("error") or said.get("status"), what)
        elif "error" in text:  # in a stream that had begun
            self.assertNotRegex(text, r'\[DONE\]|message_stop|"done": ?true', what)
        else:
            self.fail(f"{what}: another answer:\n{came}\ninstead of\n{expected}")
        return False

    def start(self, what, text):
        """None where the failure is told by its end."""
        for _ in range(10):
            os.environ["QUERN_FAULT"] = text
            gateway = Faulty(self.folder, self.rundir, "--request-log", str(self.folder / "requests"))
            del os.environ["QUERN_FAULT"]
            if until(gateway.answers, f"{what}: it starts or ends") == "serves":
                return gateway
            if (self.folder / "fired").exists() or "Address already in use" not in gateway.log():
                break
            gateway.log_path.unlink()  # somebody else has taken the port in between
        self.assertEqual(gateway.process.returncode, 1, what)
        self.assertTrue(gateway.log().splitlines()[-1].startswith("quern-gateway: "), f"{what}: {gateway.log()}")
        return None

    def run_with(self, kind, n):
        """Whether the n-th call of the kind was made."""
        what = f"{kind} {n}"
        fired = self.folder / "fired"
        fired.unlink(missing_ok=True)
        (self.folder / "quern-gateway.log").unlink(missing_ok=True)
        gateway = self.start(what, f"gateway:{kind}:{n}:{fired}")
        if gateway:
            for request, expected in zip(REQUESTS, self.expected):
                self.check(self.once(gateway, *request), expected, f"{what}: {request[1]}")
                self.assertIsNone(gateway.process.poll(), f"{what}: {request[1]}:\n{gateway.log()}")
            for request, expected in zip(REQUESTS, self.expected):  # it takes a moment where the session was lost
                until(lambda: self.check(self.once(gateway, *request), expected, what), f"{what}: {request[1]} as ever")
            status = gateway.end()
            self.assertEqual(status, 0, f"{what}:\n{gateway.log()}")
            self.assertNotRegex(gateway.log(), "Sanitizer|runtime error", what)
        self.nothing_runs()
        if os.environ.get("QUERN_FAULTS_TOLD"):
            print(what, fired.read_text() if fired.exists() else "none", "started" if gateway else "ended", flush=True)
        self.assertTrue(gateway or fired.exists(), what)
        return fired.exists()

    def run_kind(self, kind, factor=2):
        self.expected = [self.once(self.gateway, *request) for request in REQUESTS]
        self.assertNotIn(None, self.expected)
        from_kind, _, first = os.environ.get("QUERN_FAULTS_FROM", "").partition(":")
        if from_kind not in ("", kind):
            return
        n, step = int(first or 1), 1
        while self.run_with(kind, n):
            n += step
            step *= 1 if os.environ.get("QUERN_FAULTS_ALL") else factor
        self.assertGreater(n, 1)

    def test_a_gateway_lacks_memory(self):
        self.run_kind("memory")

    def test_a_gateway_lacks_descriptors(self):
        self.run_kind("descriptors")

    def test_a_gateway_lacks_space(self):
        self.run_kind("space")
        self.run_kind("short")

    def test_a_gateways_sockets_fail(self):
        self.run_kind("sockets")
        self.run_kind("sending")
        self.run_kind("receiving", 4)


if __name__ == "__main__":
    main()
