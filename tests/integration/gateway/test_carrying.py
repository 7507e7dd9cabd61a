#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Streams of a fleet whose pools are killed, frozen, ended and taken away: each is what it would have been."""

import json
import os
import signal
import threading
import time

import fleet
from pool import SCALED, WAIT, children_of, go_on, long_request, main, until

TOKENS, MANY = (200, 400) if SCALED else (400, 900)
# What must not notice a seam: penalties that count the output, stops, log probabilities, a sampled answer.
BODY = {"prompt": "Tell me about colours and days.", "max_tokens": TOKENS, "temperature": 0.8, "frequency_penalty": 0.3,
        "seed": 11, "logprobs": 2, "stop": ["zzzz"], "ignore_eos": True}


class Stream(threading.Thread):
    """A stream that is read as it comes."""

    def __init__(self, gateway, **more):
        super().__init__()
        self.body = {**BODY, "stream": True, "stream_options": {"include_usage": True}, **more}
        self.gateway, self.events, self.error = gateway, [], None
        self.times = []
        self.start()

    def run(self):
        try:
            connection = self.gateway.connect()
            connection.request("POST", "/v1/completions", json.dumps(self.body))
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            for line in answer:
                if line.startswith(b"data: {"):
                    self.events.append(json.loads(line[6:]))
                    self.times.append(time.monotonic())
            connection.close()
        except Exception as error:  # shown by whoever asks for the text
            self.error = error

    def whole(self):
        """Its text, its log probabilities, its end and its usage."""
        self.join(WAIT)
        assert self.error is None, self.error
        bad = [event for event in self.events if "error" in event]
        assert not bad, bad
        choices = [event["choices"][0] for event in self.events if event["choices"]]
        text = "".join(choice["text"] for choice in choices)
        told = [choice["logprobs"] for choice in choices if choice.get("logprobs")]
        tokens = [token for each in told for token in each["tokens"]]
        numbers = [round(number, 3) for each in told for number in each["token_logprobs"]]
        reason = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        usage = next(event["usage"] for event in self.events if event.get("usage"))
        return text, tokens, numbers, reason, usage["completion_tokens"]

    def longest_silence(self):
        return max(after - before for before, after in zip(self.times, self.times[1:]))


class Carrying(fleet.Base):
    def cpu_pool(self, name, *more):
        return self.pool(name, "--device", "cpu", "--threads", "1", "--slots", "4", *more)

    def three(self):
        pools = [self.cpu_pool(name) for name in "abc"]
        gateway = self.gateway()
        return pools, gateway, Stream(gateway).whole()

    def with_it(self, gateway, pools):
        """The pool that has a request of the gateway."""
        return until(lambda: next((pool for pool in pools if gateway.of("requests", pool) > 0), None), "it runs")

    def begun(self, stream, events=20):
        until(lambda: len(stream.events) >= events or not stream.is_alive(), "it has begun")
        self.assertTrue(stream.is_alive(), stream.events[-1:])

    def test_a_stream_survives_the_death_of_its_pool_and_of_the_next_one(self):
        pools, gateway, whole = self.three()
        stream = Stream(gateway)
        self.begun(stream)
        first = self.with_it(gateway, pools)
        first.kill()
        left = [pool for pool in pools if pool is not first]
        second = self.with_it(gateway, left)
        count = len(stream.events)
        self.begun(stream, count + 20)
        second.kill()
        self.assertEqual(stream.whole(), whole)
        self.assertEqual(sum(gateway.of("moved_total", pool) for pool in pools), 2)
        self.assertLess(stream.longest_silence(), 5)

    def test_a_frozen_broker_loses_its_streams_and_what_it_says_later_is_dropped(self):
        pools, gateway, whole = self.three()
        streams = [Stream(gateway) for _ in range(4)]
        for stream in streams:
            self.begun(stream, 5)
        frozen = self.with_it(gateway, pools)
        pid = frozen.broker
        os.kill(pid, signal.SIGSTOP)
        until(lambda: gateway.of("moved_total", frozen) > 0, "its streams move")
        go_on(pid)
        for stream in streams:
            self.assertEqual(stream.whole(), whole)
        until(lambda: frozen.status()["running"] == 0, "it was told that nobody wants them")

    def test_a_request_that_its_client_left_ends_at_a_pool_that_is_silent(self):
        pools = [self.cpu_pool(name) for name in "ab"]
        gateway = self.gateway()
        connection = gateway.raw(long_request(stream=True, max_tokens=MANY, ignore_eos=True))
        self.assertIn(b" 200 ", connection.recv(1000))
        busy = self.with_it(gateway, pools)
        frozen = [busy.pid, *children_of(busy.pid, "quern-broker"), *children_of(busy.pid, "quern-worker")]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        connection.close()
        try:
            until(lambda: gateway.of("requests", busy) == 0, "it is over")
        finally:
            for pid in frozen:
                go_on(pid)

    def test_a_pool_that_ends_hands_over_what_it_cannot_finish(self):
        pools = [self.cpu_pool(name, "--drain-seconds", "0") for name in "ab"]
        gateway = self.gateway()
        whole = Stream(gateway).whole()
        stream = Stream(gateway)
        self.begun(stream)
        self.with_it(gateway, pools).process.process.send_signal(signal.SIGTERM)
        self.assertEqual(stream.whole(), whole)
        self.assertEqual(sum(gateway.of("moved_total", pool) for pool in pools), 1)

    def test_nothing_moves_for_a_broker_a_worker_or_the_gateway_itself(self):
        pools = [self.cpu_pool(name) for name in "abc"]
        gateway = self.gateway()
        whole = Stream(gateway, max_tokens=MANY).whole()
        stream = Stream(gateway, max_tokens=MANY)
        self.begun(stream)
        busy = self.with_it(gateway, pools)
        for worker in children_of(busy.pid, "quern-worker"):
            os.kill(worker, signal.SIGKILL)
        self.begun(stream, len(stream.events) + 20)
        if busy.replace_broker() >= fleet.SOON:
            self.skipTest("the machine is too busy to replace a broker in time")
        gateway.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        gateway.process.send_signal(signal.SIGCONT)
        self.assertEqual(stream.whole(), whole)
        self.assertEqual([gateway.of("moved_total", pool) for pool in pools], [0, 0, 0], gateway.log())

    def test_a_gateway_that_hears_nobody_moves_nothing_and_says_so(self):
        pools, gateway, whole = self.three()
        stream = Stream(gateway)
        self.begun(stream)
        frozen = [pool.broker for pool in pools]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: gateway.ask("GET", "/health/ready")[0] == 503, "it is not ready")
        self.assertEqual(gateway.metrics()["quern_fleet_cut_off"], 1)
        self.assertEqual(gateway.ask("GET", "/health/live")[0], 200)
        for pid in frozen:
            go_on(pid)
        self.assertEqual(stream.whole(), whole)
        self.assertEqual([gateway.of("moved_total", pool) for pool in pools], [0, 0, 0], gateway.log())
        until(lambda: gateway.ask("GET", "/health/ready")[0] == 200, "it is ready again")

    def test_a_stream_goes_nowhere_but_to_its_own_model_and_as_much_context(self):
        own = self.cpu_pool("a")
        others = [self.cpu_pool("b", "--rope-freq-base", "12345"), self.cpu_pool("c", "--ctx", "512")]
        gateway = self.gateway()
        for i in range(20):  # each prompt goes to the pool that has done least
            stream = Stream(gateway, prompt=f"{i}. Tell me about it.")
            self.begun(stream)
            if gateway.of("requests", own) == 1:
                break
            stream.join(WAIT)
        self.assertTrue(stream.is_alive(), [gateway.of("chosen_total", pool) for pool in (own, *others)])
        own.kill()
        time.sleep(2)
        self.assertEqual(gateway.of("moved_total", own), 0)
        own.start()  # it is another one, that knows nothing of the stream
        stream.join(WAIT)
        self.assertIn(stream.events[-1]["error"]["code"], ("worker_lost", "draining"), stream.events[-1])

    def test_a_stream_prefers_its_own_arithmetic_and_else_goes_on_in_another(self):
        equal = [self.cpu_pool("a"), self.cpu_pool("b")]
        other = self.cpu_pool("c", "--kv-type", "q8_0")
        gateway = self.gateway()
        self.assertIn("kv=q8_0", other.status()["workers"][0]["arithmetic"])
        for i in range(20):
            stream = Stream(gateway, prompt=f"{i}. Tell me about it.")
            self.begun(stream)
            if gateway.of("requests", other) == 0:
                break
            stream.join(WAIT)
        first = self.with_it(gateway, equal)
        second = equal[1 - equal.index(first)]
        first.kill()
        self.with_it(gateway, [second])
        self.assertEqual(gateway.of("moved_unequal_total", first), 0)
        count = len(stream.events)
        self.begun(stream, count + 5)
        second.kill()
        stream.join(WAIT)
        self.assertEqual(gateway.of("moved_unequal_total", second), 1, gateway.log())
        self.assertEqual(stream.whole()[4], TOKENS)

    def test_a_stream_ends_when_another_pool_has_taken_the_place_of_its_own(self):
        own = self.cpu_pool("a")
        gateway = self.gateway()
        stream = Stream(gateway, max_tokens=MANY)
        self.begun(stream)
        own.kill()
        own.renew_key()
        own.member = ()  # the fleet knows it by its old key only
        own.start()
        stream.join(WAIT)
        self.assertFalse(stream.is_alive())
        self.assertEqual(stream.events[-1]["error"]["code"], "worker_lost", stream.events[-1])


if __name__ == "__main__":
    main()
