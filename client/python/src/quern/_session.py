# SPDX-License-Identifier: MIT
"""A session: opening it, keeping it alive, opening it again; whom it concerns what comes; what is asked and answered.

    hello ──hello_ok──▶ join ──welcome on the stream──▶ open
      ▲                                                  │ hello_required (the broker restarted, or held us for gone)
      └──────────────────────────────────────────────────┘
    broken: no common version, a key that the pool does not know, a client that was closed. For good.

The session's identity stays the same over all of it. Nothing is sent twice at once: each step is repeated by its own
timer until its answer comes. A broker that does not take the first hello is believed; one that had taken it and has no
room for the moment, as it may after a restart, is asked again while patience lasts.

Patience ends what waits, and not the session: whoever waits hears why, once, and the session goes on saying hello. What
is asked from then on waits for as long again, and is served when the pool has come back meanwhile. The pool may know
requests that nobody waits for any more: it is told to cancel them when the session is open again, but for those that
are to be kept.

There are no sockets and no clock here. Whoever has them (`_driver`; the tests) puts in what came with the time, and
takes out what is to be sent (`out`, for the DEALER, in order) and where the stream is (`stream_endpoint`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from . import _codec, _tables
from ._errors import (
    BadRequest,
    Closed,
    Error,
    InternalError,
    NoAnswer,
    NotAllowed,
    Overloaded,
    TooLong,
    Unreachable,
    Unsupported,
    error_of,
)
from ._request import Encoded, Request, Sink, printable
from ._types import Model
from ._values import Malformed

HELLO = 1.0  # seconds until the next hello
PING = 1.0
TAKEN = 0.1  # from the end of a request until the broker is told
TAKEN_AT_ONCE = 256  # ids of answers taken, told in one ping
JOIN_FIRST, JOIN_MOST = 0.02, 1.0
AGAIN = 1.0  # from a question to asking it again, at first
ABSENT = 2.0  # without a call: then it is us who were away

# What the protocol bounds, until the pool has told its own.
LIMITS = {
    "request_bytes": _tables.MAX_REQUEST_BYTES,
    "prompt_ids": _tables.MAX_PROMPT_IDS,
    "generate_bytes": _tables.MAX_GENERATE_BYTES,
    **{
        name: _tables.KINDS["generate"].by_key[key].high
        for name, key in (
            ("stops", "stop"),
            ("stop_ids", "stop_ids"),
            ("logit_bias", "logit_bias"),
            ("grammar_bytes", "grammar"),
        )
    },
    "stop_bytes": _tables.KINDS["generate"].by_key["stop"].item_high,
    "logprobs": _tables.KINDS["generate"].by_key["logprobs"].high - 1,
}

Answer = Callable[[Mapping[str, Any] | Error], None]


class _Question:
    """A status, tokenize or detokenize that waits for its answer."""

    def __init__(self, wire: bytes, answer: Answer, asked_at: float, until: float) -> None:
        self.wire, self.answer, self.asked_at, self.until = wire, answer, asked_at, until
        self.sent_at, self.wait = 0.0, 0.0


class Session:
    """One session with one pool."""

    def __init__(self, endpoint: str, now: float, patience: float = 30.0) -> None:
        self.endpoint = endpoint
        self.patience = patience
        self.id = os.urandom(16)
        self.state = ""
        self.broken: Error | None = None
        self.given_up: Error | None = None  # why what waited was ended last; None while the session is open
        self.times_given_up = 0
        self.stale = False  # what waits in the sockets for a pool that did not come is void; who has them sets it back
        self.out: deque[bytes] = deque()
        self.stream_endpoint: str | None = None
        self.boot = 0
        self.limits: Mapping[str, int] = LIMITS
        self.models: tuple[Model, ...] = ()
        self.now = self.heard_at = self.closed_at = self.ticked_at = now
        self.page_took = 0.0  # seconds from the asking until a page came: the last full one, or a slower one since
        self.requests: dict[bytes, Request] = {}
        self._opened_before = False
        self._hello_at = self._ping_at = self._join_at = self._join_wait = 0.0
        self._nonce = 0
        self._taken: list[bytes] = []
        self._told: list[bytes] = []  # of these, what a ping said that had no pong yet
        self._taken_at = 0.0
        self._questions: dict[int, _Question] = {}
        self._orphans: list[bytes] = []  # requests that the pool may know and nobody waits for
        self._last_ref = 0
        self._start()

    # ---- what the program wants ----

    def submit(self, made: Encoded, sink: Sink, now: float) -> None:
        """Sends an encoded generate, now or when the session is open."""
        self.now = now
        request = Request(made, sink, now)
        if not self._add(request):
            return
        if self.state == "open":
            request.send(self)

    def attach(self, request_id: bytes, owner: bytes, sink: Sink, now: float) -> None:
        """Takes over a request of another session, from its first output on."""
        self.now = now
        request = Request(Encoded(request_id, b"", 0), sink, now)
        request.owner = owner
        request.state = "attaching"
        if not self._add(request):
            return
        if self.state == "open":
            request.send_attach(self)

    def _add(self, request: Request) -> bool:
        if self.broken is not None:
            request.fail(self, self.broken.name, str(self.broken))
            return False
        self._wait_anew()
        self.requests[request.id] = request
        return True

    def cancel(self, request_id: bytes, now: float) -> None:
        """Asks for the end of a request; nothing when it has ended already."""
        self.now = now
        request = self.requests.get(request_id)
        if request is not None:
            request.cancel_wanted = True
            if request.state == "new":  # the pool has not heard of it
                request.end_unsent(self)
            else:
                request.press_cancel(self)

    def ask(self, kind: str, fields: Mapping[str, Any], answer: Answer, timeout: float, now: float) -> None:
        """Asks the pool; one answer will come, within `timeout` seconds or so."""
        self.now = now
        self._last_ref += 1
        try:
            wire = _codec.encode(kind, {**fields, "ref": self._last_ref})
        except Malformed as wrong:
            answer(BadRequest(str(wrong).removeprefix(f"{kind}: ")))
            return
        if self.broken is not None:
            answer(self.broken)
            return
        if len(wire) > self.limits["request_bytes"]:
            answer(TooLong(f"the message has {len(wire)} bytes; the pool accepts {self.limits['request_bytes']}"))
            return
        self._wait_anew()
        question = self._questions[self._last_ref] = _Question(wire, answer, now, now + timeout)
        self._press(question)

    def close(self) -> None:
        """Says goodbye and ends everything."""
        if self._opened_before and self.broken is None:
            self.send("bye", {})
        self._break(Closed("the client was closed"))

    # ---- what comes ----

    def received(self, data: bytes, now: float) -> None:
        """A message of the DEALER."""
        self.now = self.heard_at = now
        try:
            kind, fields = _codec.decode(data)
        except Malformed:
            return  # from a newer broker, or from none: it is not ours to judge
        if kind == "hello_ok":
            self._hello_ok(fields)
        elif kind == "error":
            self._error(fields)
        elif kind == "pong":
            self._told.clear()
        elif kind in ("status_ok", "tokenize_ok", "detokenize_ok"):
            question = self._questions.pop(fields["ref"], None)
            if question is not None:
                question.answer(fields)
        elif (request := self.requests.get(fields.get("id", b""))) is None:
            pass  # bye_ok; or about a request that has ended
        elif kind == "accepted":
            request.accepted(self, fields)
        elif kind == "attach_ok":
            request.attached(self, fields)
        elif kind == "cancel_ok":
            request.cancelled()
        elif kind == "replay_ok":
            request.page(self, fields)
        elif kind == "end":
            request.end_told(self, fields)

    def published(self, topic: bytes, data: bytes, now: float) -> None:
        """A message of the stream."""
        self.now = now
        if topic[:16] != self.id:
            return
        try:
            kind, fields = _codec.decode(data)
        except Malformed:
            return  # a gap that the replay closes
        self.heard_at = now
        if kind == "frame":
            request = self.requests.get(fields["id"])
            if request is not None:
                request.frame(self, fields, data)
        elif kind == "progress":
            request = self.requests.get(fields["id"])
            if request is not None:
                request.progress(self, fields)
        elif kind == "welcome":
            self._welcome(fields["nonce"])

    def tick(self, now: float) -> None:
        """Says again what had no answer, and keeps the session alive. To be called every 20 ms or so."""
        # Whoever was stopped for a while has no right to call the broker silent, nor slow to open.
        if now - self.ticked_at > ABSENT:
            self.heard_at = self.closed_at = now
        self.now = self.ticked_at = now
        if self.state == "broken":
            return
        # What is not even out of here has no need to be said again.
        if not self.out:
            self._say_again()
        self._judge_patience()
        self._expire_questions()

    def _say_again(self) -> None:
        if self.state == "hello":
            if self.now - self._hello_at >= HELLO:
                self._hello()
        elif self.state == "join":
            if self.now - self._join_at >= self._join_wait:
                self._join_wait = min(2 * self._join_wait, JOIN_MOST)
                self._join()
        elif self.state == "open":
            must_tell = len(self._taken) >= TAKEN_AT_ONCE or (self._taken and self.now - self._taken_at >= TAKEN)
            if self.now - self._ping_at >= PING or must_tell:
                self._ping()
            for request in list(self.requests.values()):
                request.tick(self)
            for question in self._questions.values():
                self._press(question)

    # ---- the session ----

    def send(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Queues a message for the DEALER."""
        self.send_bytes(_codec.encode(kind, fields))

    def send_bytes(self, wire: bytes) -> None:
        """The same of an encoded one."""
        self.out.append(wire)

    def _start(self) -> None:
        if self.state == "open":
            self.closed_at = self.now
        self.state = "hello"
        self._taken, self._told = self._told + self._taken, []
        self._hello()

    def _hello(self) -> None:
        self._hello_at = self.now
        versions = (_tables.VERSION_MIN, _tables.VERSION_MAX)
        self.send("hello", {"proto": versions, "features": ["taken"], "session": self.id})

    def _join(self) -> None:
        self._join_at = self.now
        self.send("join", {"nonce": self._nonce})

    def _ping(self) -> None:
        told, self._taken = self._taken[:TAKEN_AT_ONCE], self._taken[TAKEN_AT_ONCE:]
        self._told += told
        self._ping_at = self.now
        self.send("ping", {"taken": told})

    def _hello_ok(self, fields: Mapping[str, Any]) -> None:
        if self.state != "hello":
            return
        low, high = fields["proto"]
        ours = (_tables.VERSION_MIN, _tables.VERSION_MAX)
        if low > ours[1] or high < ours[0]:
            text = f"the pool speaks versions {low} to {high} of the protocol, this program {ours[0]} to {ours[1]}"
            self._break(Unsupported(text))
            return
        # No endpoint of another kind: who answers on the network has no business to point at sockets of this machine.
        scheme = self.endpoint[: self.endpoint.index("://") + 3]
        stream = next((each for each in fields["stream"] if each.startswith(scheme)), None)
        if stream is None:
            text = f"the pool at {self.endpoint} did not name a stream endpoint for this transport"
            self._break(Unsupported(text))
            return
        self.stream_endpoint = stream
        self.boot = fields["boot"]
        self.limits = fields["limits"]
        self.models = tuple(Model(**each) for each in fields["models"])
        self.state = "join"
        self._nonce = int.from_bytes(os.urandom(8), "big")
        self._join_wait = JOIN_FIRST
        self._join()

    def _welcome(self, nonce: int) -> None:
        if self.state != "join" or nonce != self._nonce:
            return
        again, self._opened_before = self._opened_before, True
        self.state = "open"
        self.given_up = None
        orphans, self._orphans = self._orphans, []
        for each in orphans:
            self.send("cancel", {"id": each})
        self._ping_at = self.now
        self.page_took = 0.0  # by another way, perhaps
        for request in list(self.requests.values()):
            request.opened(self, again)
        for question in self._questions.values():
            self._press(question)

    def _error(self, fields: Mapping[str, Any]) -> None:
        if fields["error"] == "hello_required":
            if self.state in ("open", "join"):
                self._start()
        elif fields["id"] is not None:
            request = self.requests.get(fields["id"])
            if request is not None:
                request.refused(self, fields)
        elif fields["ref"] != 0:
            question = self._questions.pop(fields["ref"], None)
            if question is not None:
                question.answer(error_of(fields["error"], printable(fields["text"]), fields["retry_after_ms"]))
        elif (self.state == "hello" and fields.get("of") in (None, "hello")) or (
            self.state == "join" and fields.get("of") == "join"
        ):
            for_now = fields["error"] in ("overloaded", "draining")
            wrong = error_of(fields["error"], f"the pool refuses: {printable(fields['text'])}", fields["retry_after_ms"])
            if not for_now:
                self._break(wrong)
            elif not self._opened_before:
                self._give_up(wrong)

    def _judge_patience(self) -> None:
        """Whoever is silent is not waited for any longer; nor is one who answers, but not what was asked."""
        reopens = self._opened_before and self.state != "open"
        silent = self.now - self.heard_at
        closed = self.now - self.closed_at if reopens else 0.0
        if silent >= self.patience:
            text = f"the broker at {self.endpoint} has not answered for {silent:.1f} s"
        elif closed >= self.patience:
            text = f"the session at {self.endpoint} was lost and could not be reopened within {closed:.1f} s"
        else:
            return
        self._give_up(Unreachable(text))
        self.out.clear()
        self.stale = True
        self._hello()

    def _give_up(self, wrong: Error) -> None:
        """Everything that waits hears of it, and the session begins anew, by a hello in a second."""
        self.given_up = wrong
        self.times_given_up += 1
        self._orphans += [each.id for each in self.requests.values() if each.is_orphaned()]
        self._end_all(wrong)
        self.state = "hello"
        self.heard_at = self.closed_at = self._hello_at = self.now

    def _wait_anew(self) -> None:
        """Somebody wants something: whoever comes after patience was lost has all of it, not what is left of it."""
        if self.given_up is not None and not self.requests and not self._questions:
            self.heard_at = self.closed_at = self.now

    def _break(self, wrong: Error) -> None:
        """For good: everything that waits hears of it."""
        if self.broken is not None:
            return
        self.state = "broken"
        self.broken = wrong
        self._end_all(wrong)

    def _end_all(self, wrong: Error) -> None:
        away = isinstance(wrong, (Unreachable, Unsupported, Overloaded))
        for request in list(self.requests.values()):
            lost = "worker_lost" if away and request.state != "new" else wrong.name
            request.state = "lost"  # so that it is not told to be taken
            request.fail(self, lost, str(wrong))
        questions, self._questions = self._questions, {}
        for question in questions.values():
            question.answer(wrong)

    def fall_over(self, reason: BaseException) -> None:
        """A defect of this package, or no memory: nothing goes on, and everybody is told."""
        self._break(InternalError(f"the client failed: {type(reason).__name__}: {reason}"))

    def lose(self, text: str) -> None:
        """The pool's stream cannot be reached."""
        self._break(Unreachable(text))

    def forbid(self, text: str) -> None:
        """The connection was refused for good."""
        self._break(NotAllowed(text))

    def forget(self, request: Request) -> None:
        """A request has ended. That it was taken is told, so that its output need not be kept."""
        self.requests.pop(request.id, None)
        if request.state == "live":
            if not self._taken:
                self._taken_at = self.now
            self._taken.append(request.id)

    # ---- questions ----

    def has_questions(self) -> bool:
        """Whether an answer is waited for."""
        return bool(self._questions)

    def _press(self, question: _Question) -> None:
        """Asks, and again after a second, two, four …: so a broker that restarts in between is met in stride."""
        if self.state == "open" and self.now - question.sent_at >= question.wait:
            question.sent_at = self.now
            question.wait = 2 * question.wait if question.wait > 0 else AGAIN
            self.send_bytes(question.wire)

    def _expire_questions(self) -> None:
        for ref, question in list(self._questions.items()):
            if self.now >= question.until:
                del self._questions[ref]
                waited = question.until - question.asked_at
                question.answer(NoAnswer(f"the broker at {self.endpoint} did not answer within {waited:g} s"))
