#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long answers are where nobody says, which limit ends them, and that a small journal refuses none."""

import json
import os
import signal
import subprocess
import threading

from pool import BUILD, MODEL, Base, Gateway, Process, go_on, main, until

CONTEXT = 100_000
JOURNAL = 16  # MiB: three quarters of it hold 65,536 tokens of one answer
MOST = 65536
PROMPT = [300, 301, 302, 303]


class Unbounded(Gateway):
    def __init__(self, folder, rundir, *arguments):
        super().__init__(folder, rundir, "--max-tokens", "2147483647", *arguments)


class Limits(Base):
    context = CONTEXT
    more = ()

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", str(cls.context), "--slots", "16",
                             "--journal", str(JOURNAL), "--rundir", cls.rundir, *cls.more)
        cls.broker.says("ready:")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.unbounded = Unbounded(cls.folder, cls.rundir)
        cls.unbounded.ready()

    @classmethod
    def tearDownClass(cls):
        cls.unbounded.end()
        super().tearDownClass()

    def completed(self, gateway, **body):
        status, _, answer = gateway.post("/v1/completions", prompt=PROMPT, **body)
        self.assertEqual(status, 200, answer)
        return answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"], answer["choices"][0].get("limit")


class SmallJournal(Limits):
    def test_what_the_journal_cannot_hold_ends_what_nobody_asked_for(self):
        self.assertEqual(self.completed(self.unbounded), (MOST, "length", "pool"))

    def test_an_explicit_number_is_the_clients_own(self):
        self.assertEqual(self.completed(self.unbounded, max_tokens=7), (7, "length", "max_tokens"))
        status, _, answer = self.unbounded.post("/v1/completions", prompt=PROMPT, max_tokens=MOST + 1)
        self.assertEqual(status, 400)
        self.assertIn("of the journal", answer["error"]["message"])
        status, _, answer = self.unbounded.post("/v1/completions", prompt=PROMPT, max_tokens=CONTEXT + 1)
        self.assertEqual(status, 400)

    def test_the_gateways_bound_is_the_pools_to_a_client(self):
        self.assertEqual(self.completed(self.gateway), (1024, "length", "pool"))

    def test_nobody_is_refused_while_others_grow(self):
        """160 requests of up to 40,000 tokens, 960,000 in all: 175 MiB by what is reckoned, in a journal of 16."""
        made, lock = [], threading.Lock()

        def ask(number):
            asked = 40000 if number % 8 == 0 else 500 + number * 7
            result = self.completed(self.unbounded, max_tokens=asked, seed=number // 2)
            with lock:
                made.append((asked, result))
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(160)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(made), 160)
        for asked, result in made:
            self.assertEqual(result, (asked, "length", "max_tokens"))


    def test_the_status_tells_who_waits_for_room(self):
        """12 answers of 9,000 tokens with 20 alternatives each, of which the journal holds a few; they begin together."""
        place = ("--connect", str(self.rundir))

        def waiting():
            told = json.loads(subprocess.run([BUILD / "quern", "status", "--json", *place], check=True, capture_output=True).stdout)
            return told["journal_waiting"]
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)
        runs = [subprocess.Popen([BUILD / "quern", "run", *place, "--raw", "-n", "9000", "--logprobs", "20", "--json", "x"],
                                 stdout=subprocess.DEVNULL) for _ in range(12)]
        until(lambda: self.at_work() == len(runs), "the pool has them all")
        go_on(worker)
        until(waiting, "somebody waits for room")
        self.assertEqual([run.wait() for run in runs], [0] * len(runs))
        until(lambda: waiting() == 0, "nobody waits any more")


class SmallContext(Limits):
    context = 600

    def test_without_a_number_an_answer_goes_to_the_end_of_the_context(self):
        count = self.context - len(PROMPT)
        self.assertEqual(self.completed(self.unbounded), (count, "length", "context"))
        self.assertEqual(self.completed(self.unbounded, max_tokens=-1), (count, "length", "context"))
        self.assertEqual(self.completed(self.unbounded, max_tokens=count), (count, "length", "max_tokens"))

    def test_a_prompt_that_fits_is_taken_on_every_endpoint(self):
        text = "a " * 250
        messages = [{"role": "user", "content": text}]
        for path, body in (("/v1/completions", {"prompt": text}), ("/v1/chat/completions", {"messages": messages}),
                           ("/v1/messages", {"messages": messages}), ("/api/generate", {"prompt": text, "stream": False}),
                           ("/api/chat", {"messages": messages, "stream": False})):
            status, _, answer = self.unbounded.post(path, **body)
            self.assertEqual(status, 200, (path, answer))
            if path.startswith("/api/"):
                self.assertEqual((answer["done_reason"], answer["limit"]), ("length", "context"))
            elif path == "/v1/messages":
                self.assertEqual((answer["stop_reason"], answer["limit"]), ("model_context_window_exceeded", "context"))
            else:
                self.assertEqual(answer["choices"][0]["limit"], "context")


class PoolsLimit(Limits):
    more = ("--max-tokens", "50")

    def test_an_answer_that_nobody_bounded_ends_at_the_pools_limit(self):
        self.assertEqual(self.completed(self.unbounded), (50, "length", "pool"))
        self.assertEqual(self.completed(self.gateway), (50, "length", "pool"))
        self.assertEqual(self.completed(self.unbounded, max_tokens=50), (50, "length", "max_tokens"))

    def test_who_asks_for_more_is_refused_with_the_limit(self):
        status, _, answer = self.unbounded.post("/v1/completions", prompt=PROMPT, max_tokens=51)
        self.assertEqual(status, 400)
        self.assertIn("max_tokens 51 is above what this pool allows, 50 (--max-tokens)", answer["error"]["message"])

    def test_status_tells_it(self):
        status, _, answer = self.unbounded.ask("GET", "/status")
        self.assertEqual((status, answer["max_tokens"], answer["journal_limit"], answer["journal_waiting"]),
                         (200, 50, JOURNAL << 20, 0))

    def test_every_form_tells_it(self):
        messages = [{"role": "user", "content": "a"}]
        status, _, answer = self.unbounded.post("/v1/messages", messages=messages)
        self.assertEqual((status, answer["stop_reason"], answer["limit"]), (200, "max_tokens", "pool"))
        status, _, answer = self.unbounded.post("/v1/messages", messages=messages, max_tokens=5)
        self.assertEqual((status, answer["stop_reason"], answer["limit"]), (200, "max_tokens", "max_tokens"))


if __name__ == "__main__":
    main()
