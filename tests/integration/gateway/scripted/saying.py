# SPDX-License-Identifier: MIT
"""quern-gateway before a broker in a thread, whose worker says what the test wants."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TOP / "tests/unit/client/python"))
from fake_broker import Broker  # noqa: E402
from test_client import Served  # noqa: E402

WAIT = 60
# Dialects as workers tell them, each in another way of writing calls.
DIALECTS = {
    "": {"calls": {"unknown": "the template does not support tools"}, "thoughts": {"unknown": "the template does not write thoughts"}},
    "hermes": {"calls": {"arguments": "json", "head": '<tool_call>\n{"name": "', "middle": '", "arguments": ',
                         "tail": "}\n</tool_call>", "between": "\n", "name_key": "name", "arguments_key": "arguments"},
               "thoughts": {"unknown": "the template does not write thoughts"}},
    "mistral": {"calls": {"arguments": "json", "open": "[TOOL_CALLS][", "head": '{"name": "', "middle": '", "arguments": ',
                          "tail": "}", "between": ", ", "close": "]", "name_key": "name", "arguments_key": "arguments"}},
    "llama3": {"calls": {"arguments": "json", "head": '{"name": "', "middle": '", "parameters": ', "tail": "}",
                         "name_key": "name", "arguments_key": "parameters"}},
    "command-r": {"calls": {"arguments": "json", "open": "<|START_ACTION|>[", "head": '{"tool_name": "',
                            "middle": '", "parameters": ', "tail": "}", "between": ", ", "close": "]<|END_ACTION|>",
                            "name_key": "tool_name", "arguments_key": "parameters"}},
    "members": {"calls": {"arguments": "members", "head": "<tool_call>\n<function=", "middle": ">",
                          "tail": "\n</function>\n</tool_call>", "between": "\n", "before_key": "\n<parameter=",
                          "to_text": ">\n", "behind_text": "\n</parameter>", "to_other": ">\n",
                          "behind_other": "\n</parameter>"},
                "thoughts": {"open": "<think>", "close": "</think>", "key": "reasoning_content", "usual": "thought",
                             "on": "thought", "off": "text", "switch_off": {"enable_thinking": False}}},
}


class Saying(Broker):
    """Each answer has these pieces of text, two ids each."""

    def __init__(self, form, pieces):
        super().__init__(n_frames=len(pieces), script=range(len(pieces)))
        self.form, self.pieces = form, pieces
        self.worker = {"model": "fake", "state": "ready"}  # as the status tells
        self.pool = {}  # what it tells besides

    def frame(self, request, i, move=None, boot=None):
        end = super().frame(request, i, move, boot)["end"]
        return {**super().frame(request, i, move, boot), "text": self.pieces[i], "logprobs": None,
                "off": sum(len(piece.encode()) for piece in self.pieces[:i]),
                "end": {**end, "reason": "stop"} if end else None}

    def on_status(self, fields):
        worker = {"name": "worker-0", "context": 512, "dialect": json.dumps(DIALECTS[self.form]),
                  **self.worker}
        self.reply("status_ok", ref=fields["ref"], boot=self.boot, version="1", workers=[worker], **self.pool)


class Gateway:
    def __init__(self, folder, form, pieces, **worker):
        self.broker = Saying(form, pieces)
        self.broker.worker.update(worker)
        self.served = Served(self.broker, folder)
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen([os.environ["QUERN_BUILD"] + "/quern-gateway", "--connect", str(folder),
                                         "--listen", "127.0.0.1:0"], stderr=self.log)
        self.address = None

    def __enter__(self):
        try:
            self.until(lambda: "ready: http://" in self.said())
            self.address = self.said().split("ready: http://", 1)[1].split()[0]
            self.until(lambda: self.ask("GET", "/v1/models").get("data") or not self.broker.worker["model"])
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        assert self.end() == 0, self.said()

    def end(self):
        self.process.terminate()
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()
            self.served.__exit__()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def until(self, condition):
        end = time.monotonic() + WAIT
        while not condition():
            assert time.monotonic() < end and self.process.poll() is None, self.said()
            time.sleep(0.02)

    def text(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=WAIT)
        connection.request(method, path, json.dumps(body) if body else None)
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def ask(self, method, path, body=None):
        return json.loads(self.text(method, path, body))

    def events(self, path, body):
        lines = self.text("POST", path, {**body, "stream": True}).splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
