#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Streams that have nothing to say yet: their head comes at once, then pings, then how much of a prompt is read."""

import json
import os
import pty
import select
import signal
import subprocess
import time

from pool import BUILD, MODEL, SCALED, WAIT, Base, Gateway, Process, child_of, go_on, main, with_tokens

LONG = [300 + i * i % 200 for i in range(3000)]
CHAT = [{"role": "user", "content": "Hi"}]


class Silent(Base):
    """A worker that stands still says nothing."""
    options = ("--sse-ping", "1")

    def stand_still(self):
        self.worker = child_of(self.broker.process.pid, "quern-worker")
        os.kill(self.worker, signal.SIGSTOP)
        self.addCleanup(go_on, self.worker)

    def open(self, path, **body):
        connection = self.gateway.connect()
        begun = time.monotonic()
        connection.request("POST", path, json.dumps({"stream": True, **body}))
        answer = connection.getresponse()  # returns when the head is here
        self.addCleanup(connection.close)
        return answer, time.monotonic() - begun

    def rest(self, answer):
        go_on(self.worker)
        return answer.read().decode()

    def test_the_head_comes_before_there_is_anything_to_say(self):
        self.stand_still()
        took = []
        for path, kind, body in (("/v1/chat/completions", "text/event-stream", {"messages": CHAT, "max_tokens": 3}),
                                 ("/v1/completions", "text/event-stream", {"prompt": "x", "max_tokens": 3}),
                                 ("/v1/messages", "text/event-stream", {"messages": CHAT, "max_tokens": 3}),
                                 ("/api/chat", "application/x-ndjson", {"messages": CHAT, "options": {"num_predict": 3}})):
            answer, seconds = self.open(path, **body)
            self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, kind))
            self.assertRegex(answer.getheader("x-request-id"), "^req_")
            took.append(seconds)
            if path == "/v1/chat/completions":  # and what every stream begins with
                self.assertIn(b'"role":"assistant"', answer.read1())
            self.last = answer
        self.assertLess(min(took), 0.1)  # usually 0.052 each; others may have the processor
        self.assertIn('"done":true', self.rest(self.last))

    def pings(self, path, **body):
        self.stand_still()
        answer, _ = self.open(path, max_tokens=3, **body)
        time.sleep(2.5)
        return self.rest(answer)

    def test_a_silent_stream_is_pinged(self):
        events = self.pings("/v1/completions", prompt="x").split("\n\n")
        self.assertIn(events.count(": ping"), (2, 3))
        self.assertEqual(events[0], ": ping")
        self.assertEqual(events[-2:], ["data: [DONE]", ""])

    def test_anthropics_have_an_event_for_it(self):
        events = self.pings("/v1/messages", messages=CHAT).split("\n\n")
        self.assertIn(events.count('event: ping\ndata: {"type":"ping"}'), (2, 3))
        self.assertIn("message_start", events[0])
        self.assertIn("message_stop", events[-2])

    def test_ollamas_lines_stay_json(self):
        self.stand_still()
        answer, _ = self.open("/api/generate", prompt="x", options={"num_predict": 3})
        time.sleep(1.5)
        lines = self.rest(answer).splitlines()
        self.assertTrue(json.loads(lines[-1])["done"])
        [json.loads(line) for line in lines]

    def test_a_stream_that_speaks_is_not_pinged(self):
        text = self.gateway.post("/v1/completions", prompt="x", max_tokens=1000, stream=True)[2]
        self.assertNotIn("ping", text)

    def test_a_client_that_goes_meanwhile_is_forgotten(self):
        self.stand_still()
        answer, _ = self.open("/v1/completions", prompt="x", max_tokens=100000)
        answer.close()
        time.sleep(1.5)
        go_on(self.worker)
        self.nothing_runs()

    def test_whole_answers_wait_for_the_end(self):
        self.stand_still()
        connection = self.gateway.connect()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 3}))
        self.assertEqual(select.select([connection.sock], [], [], 0.5)[0], [])
        go_on(self.worker)
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_what_a_worker_refuses_soon_still_has_a_status(self):
        status, headers, answer = self.gateway.post("/v1/completions", prompt=[300, 2000000000], max_tokens=3, stream=True)
        self.assertEqual((status, headers["Content-Type"]), (400, "application/json"), answer)


class Unpinged(Silent):
    options = ("--sse-ping", "0")

    def test_a_silent_stream_is_pinged(self):
        self.assertNotIn("ping", self.pings("/v1/completions", prompt="x"))

    test_anthropics_have_an_event_for_it = test_a_silent_stream_is_pinged


class Held(Base):
    """A worker that makes tokens now and then, none of which has a text: nothing is sent."""
    options = ("--sse-ping", "1")

    @classmethod
    def start_broker(cls):
        os.environ["QUERN_KERNELS"] = "portable"
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "cpu", "--threads", "1", "--rundir", cls.rundir)
        del os.environ["QUERN_KERNELS"]
        cls.broker.says("ready:")

    def test_tokens_without_text_are_no_reason_not_to_ping(self):
        worker = child_of(self.broker.process.pid, "quern-worker")
        self.addCleanup(go_on, worker)
        control = self.gateway.post("/tokenize", content="<|im_start|>")[2]["tokens"]
        self.assertEqual(len(control), 1)
        most = 300 if SCALED else 900
        body = {"prompt": "x", "max_tokens": most, "temperature": 0, "logit_bias": {control[0]: 100}, "stream": True}
        connection = self.gateway.connect()
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream_options": {"include_usage": True}}))
        answer = connection.getresponse()
        for _ in range(14):  # a token every few milliseconds, at times none for a quarter of a second
            os.kill(worker, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(worker, signal.SIGCONT)
            time.sleep(0.005)
        events = answer.read().decode().split("\n\n")
        connection.close()
        self.assertEqual(events[-2:], ["data: [DONE]", ""])
        self.assertEqual(json.loads(events[-3].removeprefix("data: "))["usage"]["completion_tokens"], most)
        self.assertGreaterEqual(events.count(": ping"), 2, events[:9])


class Progress(Base):
    @classmethod
    def start_broker(cls):
        model = cls.folder / "infill.gguf"
        model.write_bytes(with_tokens(MODEL, prefix=1, suffix=2, middle=3))
        cls.broker = Process(cls.folder, "quern-broker", str(model), "--device", "null", "--ctx", "1000000", "--frame-us",
                             "0", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def progress(self, path, **body):
        """What the events say, and where the first piece of text stands among them."""
        status, _, text = self.gateway.ask("POST", path, {"stream": True, "return_progress": True, "max_tokens": 3, **body})
        self.assertEqual(status, 200, text)
        events = [json.loads(each.removeprefix("data: ")) for each in text.split("\n\n")
                  if each.startswith("data: {")]
        said = [event["prompt_progress"] for event in events if "prompt_progress" in event]
        last = max(i for i, event in enumerate(events) if "prompt_progress" in event)
        self.assertTrue(all(not event["choices"][0].get("text") for event in events[:last] if "choices" in event))
        return said

    def check(self, said, total, cached):
        self.assertTrue(said)
        for each in said:
            self.assertEqual((each["total"], each["cache"]), (total, cached), said)
            self.assertTrue(each["cache"] <= each["processed"] <= each["total"])
            self.assertGreaterEqual(each["time_ms"], 0)
        read = [each["processed"] for each in said]
        self.assertEqual((read, read[-1]), (sorted(read), total))

    def test_it_says_how_much_of_a_prompt_is_read(self):
        self.check(self.progress("/v1/completions", prompt=LONG), len(LONG), 0)
        self.check(self.progress("/v1/completions", prompt=LONG), len(LONG), 2999)  # one id is left

    def test_chat_and_fill_in_have_it_too(self):
        said = self.progress("/infill", input_prefix="word " * 500, input_suffix=" end")
        self.assertGreater(said[-1]["total"], 500)
        self.check(said, said[-1]["total"], 0)
        said = self.progress("/v1/chat/completions", messages=[{"role": "user", "content": "word " * 500}])
        self.assertGreater(said[-1]["total"], 500)
        self.check(said, said[-1]["total"], said[-1]["cache"])

    def test_nobody_else_is_told(self):
        text = self.gateway.post("/v1/completions", prompt=LONG, max_tokens=3, stream=True)[2]
        self.assertNotIn("prompt_progress", text)
        status, _, answer = self.gateway.post("/v1/completions", prompt=LONG, max_tokens=3, return_progress=True)
        self.assertEqual(status, 200)
        self.assertNotIn("prompt_progress", answer)
        status, _, answer = self.gateway.post("/v1/completions", prompt=LONG, max_tokens=3, return_progress=1, stream=True)
        self.assertEqual((status, answer["error"]["param"]), (400, "return_progress"))


class Terminal(Base):
    @classmethod
    def start_broker(cls):
        os.environ["QUERN_KERNELS"] = "portable"  # slow enough to be seen
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "cpu", "--rundir", cls.rundir)
        del os.environ["QUERN_KERNELS"]
        cls.broker.says("ready:")

    def test_run_shows_how_much_is_read(self):
        ours, theirs = pty.openpty()
        running = subprocess.Popen([str(BUILD / "quern"), "run", "--connect", self.rundir, "-n", "4", "word " * (250 if SCALED else 900)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
        self.assertEqual(running.wait(WAIT), 0)
        self.assertRegex(said, rb"reading the prompt \[#*-*\] \d+%")
        self.assertIn(b"\r\x1b[K", said)
        self.assertNotIn(b"reading", running.stdout.read())
        running.stdout.close()
        os.close(ours)


if __name__ == "__main__":
    main()
