# SPDX-License-Identifier: MIT
"""Clients of a fleet's gateways, which compare every answer with that of the undisturbed run."""

import asyncio
import collections
import json
import random
import re
import threading
import time

CONNECT_SECONDS = 3   # until a gateway that does not answer counts as gone
SILENCE_SECONDS = 40  # of a stream, after which it is lost
ANSWER_SECONDS = 120  # for one answer, whoever gives it


class Stream:
    """One attempt to get an answer."""

    def __init__(self, which):
        self.which, self.text, self.times = which, [], []
        self.tokens = self.reason = self.error = None
        self.whole = False

    def take(self, event):
        self.times.append(time.monotonic())
        if "error" in event:
            self.error = event["error"]
        for choice in event.get("choices", ()):
            self.text.append(choice["text"])
            self.reason = choice["finish_reason"] or self.reason
        if event.get("usage"):
            self.tokens = event["usage"]["completion_tokens"]

    def gap_after(self, moment):
        """The longest of its silences that last beyond that moment and begin within a second of it, without what was
        before: as long as from the fault to the next token, or longer. None: it ended too soon."""
        pairs = [(before, after) for before, after in zip(self.times, self.times[1:])
                 if after > moment and before < moment + 1]
        if not pairs:
            return None
        return max(after - max(before, moment) for before, after in pairs)


class Refused(Exception):
    """Nobody has begun to answer, and may do so later."""


async def read_events(reader):
    """The lines of a chunked answer that have data."""
    rest = b""
    while True:
        size = int(await asyncio.wait_for(reader.readline(), SILENCE_SECONDS) or b"-1", 16)
        if size < 0:
            raise ConnectionError("the connection has ended")
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        *lines, rest = (rest + data[:-2]).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line[6:]


async def ask(address, body, stream):
    """Asks a gateway; the stream gets what comes. Refused, or OSError and the like: the connection has ended."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(address, 8080, limit=1 << 20), CONNECT_SECONDS)
    except (OSError, asyncio.TimeoutError):
        raise Refused("it does not listen") from None
    try:
        data = json.dumps(body).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(data) + data)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE_SECONDS)
        status = int(head.split()[1])
        if status in (429, 503):
            said = re.search(rb'"message": ?"([^"]*)"', await asyncio.wait_for(reader.read(2000), SILENCE_SECONDS))
            raise Refused(said[1].decode() if said else f"status {status}")
        if status != 200:
            stream.error = {"code": status, "message": (await reader.read(1000)).decode()}
            return
        async for event in read_events(reader):
            if event == b"[DONE]":
                stream.whole = True
            else:
                stream.take(json.loads(event))
    finally:
        writer.close()


class Clients(threading.Thread):
    """Asks some requests again and again, `at_once` at a time, until it is told to end."""

    def __init__(self, addresses, bodies, at_once, expected=None, seed=1, most=None):
        super().__init__()
        self.addresses, self.bodies, self.at_once, self.expected = addresses, bodies, at_once, expected
        self.random = random.Random(seed)
        self.most = most
        self.asked = 0
        self.ending = False
        self.answers = {}  # without `expected`: what is to be expected
        self.running = set()
        self.counts = collections.Counter()
        self.refusals = collections.Counter()
        self.troubles = []  # what was wrong, in words
        self.start()

    def run(self):
        asyncio.run(self.all())

    async def all(self):
        await asyncio.gather(*(self.client(number) for number in range(self.at_once)))

    def end(self):
        self.ending = True
        self.join()

    def next_request(self):
        """The number of the next request; None: there is none."""
        if self.ending or self.asked == (len(self.bodies) if self.expected is None else self.most):
            return None
        self.asked += 1
        return self.asked - 1 if self.expected is None else self.random.randrange(len(self.bodies))

    async def client(self, number):
        gateway = number
        while (which := self.next_request()) is not None:
            gateway = await self.answer(which, gateway)

    async def answer(self, which, gateway):
        """Asks until somebody has answered. The gateway that did."""
        until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until:
            stream = Stream(which)
            self.running.add(stream)
            try:
                await ask(self.addresses[gateway % len(self.addresses)], self.bodies[which], stream)
                self.judge(stream)
                return gateway
            except Refused as refusal:
                self.counts["refused"] += 1
                self.refusals[str(refusal)] += 1
                await asyncio.sleep(0.1)
            except asyncio.TimeoutError:
                self.wrong("lost", which, f"silent for {SILENCE_SECONDS} s behind {len(''.join(stream.text))} bytes")
                return gateway
            except (OSError, EOFError, ValueError):  # of the gateway
                self.counts["asked again"] += 1
                self.judge_part(stream)
            finally:
                self.running.discard(stream)
            gateway += 1
        self.wrong("lost", which, f"no answer in {ANSWER_SECONDS} s")
        return gateway

    def wrong(self, how, which, text):
        self.counts[how] += 1
        self.troubles.append(f"{how}: request {which}: {text}")

    def judge_part(self, stream):
        got = "".join(stream.text)
        if self.expected is not None and not self.expected[stream.which][0].startswith(got):
            self.wrong("different", stream.which, f"before its gateway died: {got[-80:]!r}")

    def judge(self, stream):
        got = "".join(stream.text), stream.reason, stream.tokens
        if stream.error or not stream.whole:
            self.wrong("lost", stream.which, f"{stream.error} behind {len(got[0])} bytes")
        elif self.expected is None:
            self.answers[stream.which] = got
            self.counts["answers"] += 1
        elif got == self.expected[stream.which]:
            self.counts["answers"] += 1
        else:
            wanted = self.expected[stream.which]
            how = "doubled" if len(got[0]) > len(wanted[0]) else "different"
            how = "lost" if wanted[0].startswith(got[0]) and len(got[0]) < len(wanted[0]) else how
            self.wrong(how, stream.which, f"{got[1:]} instead of {wanted[1:]}, {got[0][-60:]!r}, {wanted[0][-60:]!r}")
