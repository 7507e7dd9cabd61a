# SPDX-License-Identifier: MIT
"""A request: from what the caller gives to the keys of a `generate`, and its life from there to its end.

    new ──session open──▶ sent ──accepted, or a frame──▶ live ──last frame──▶ gone
                            └────────error───────────────────────────────────▶ gone
    live ──session opened again──▶ attaching ──attach_ok──▶ live
                                       └──unknown, nothing received──▶ sent

Frames of one request may come late, twice, in any order, or not at all. One that begins at or before what was
delivered is delivered from there on; one that begins beyond is a gap. Then the request is `replaying`: live frames are
held, the broker is asked for what is missing, page after page, and when it has no more the held frames are looked at as
if they came now. What is held twice, or came in a page too, is a duplicate and delivers nothing: so the order of
arrival decides nothing. Older epochs are dropped when live (a fenced worker may still publish) and are good in a page
(the broker kept them).

A page that is asked for twice comes twice, and on a slow link the second one keeps the next from coming. So a page is
waited for in proportion to the time that others took, and longer after each asking; and one that brings nothing new is
no reason to ask, for the asking that followed its like is under way.

Nothing here reads a clock or a socket: the session calls in with what came and what time it is.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _codec, _tables
from ._errors import BadRequest, TooLong
from ._types import End, Logprob, Piece, Progress, Prompt
from ._values import Malformed

if TYPE_CHECKING:
    from ._session import Session

Sink = Callable[[Piece], None]
Epoch = tuple[int, int]

SILENCE = 1.0  # seconds without a frame, a page or a verdict: ask
PAGE_TIMES = 4  # without a page for so many times as long as others took: ask again
PAGE_MOST = 30.0  # seconds; and twice as long after each asking, but no longer than this
END = 0.1  # from the DEALER's end to the last frame
HELD_FRAMES = 8192  # live frames kept while a replay runs; beyond, they are dropped and replayed later
HELD_BYTES = 4 << 20
PART_BYTES = 1 << 20  # of a generate that goes in parts, in one message: other messages are not kept for long
PART_HEAD = 512  # what stands around the bytes of a part, at most
FRUITLESS = 3  # replays that bring nothing after the end was told, until nothing is believed to come


# ---- what the caller gives ----


def generation(prompt: Prompt, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a generate, but its id; the seed is chosen here, so that the same bytes, sent again to another
    broker, make the same output. `BadRequest` names what cannot be right."""
    known = _tables.Parameters.__annotations__
    fields: dict[str, Any] = {"prompt": prompt}
    if isinstance(prompt, str):
        fields["special"] = True  # the protocol's own default is False, for clients of old
    for name, value in parameters.items():
        if name not in known:
            raise BadRequest(f"{name}: unknown parameter")
        if value is not None:
            fields[name] = value
    for name in ("stop", "require", "bad_words", "dry_sequence_breakers"):
        if isinstance(fields.get(name), str):
            fields[name] = [fields[name]]
    for name in ("stop", "require", "stop_ids", "bad_words", "dry_sequence_breakers", "output"):
        if name in fields and isinstance(fields[name], Sequence):
            fields[name] = list(fields[name])
    if isinstance(fields.get("grammar"), Mapping):  # a schema as Python has it
        try:
            fields["grammar"] = json.dumps(fields["grammar"], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as wrong:
            raise BadRequest(f"grammar: {wrong}") from None
        fields.setdefault("grammar_kind", "schema")
    if isinstance(fields.get("logit_bias"), Mapping):
        fields["logit_bias"] = list(fields["logit_bias"].items())
    if isinstance(fields.get("logit_bias_text"), Mapping):
        fields["logit_bias_text"] = [{"text": text, "bias": bias} for text, bias in fields["logit_bias_text"].items()]
    if fields.get("output") and "seed" not in fields:
        raise BadRequest("output: its seed is missing")
    fields.setdefault("seed", int.from_bytes(os.urandom(8), "big"))
    if fields.get("keep_s"):
        fields["on_disconnect"] = "keep"
    # A pool that does not know them would make something else.
    needed = [name for name in ("continue_turn", "suffix") if fields.get(name) not in (None, False)]
    if _needs_samplers(fields):
        needed.append("samplers")
    needed += [name for name in ("ignore_eos", "min_tokens") if fields.get(name)]
    if "thinking_budget" in fields:
        needed.append("thinking_budget")
    if fields.get("output") or fields.get("off") or fields.get("lost") or "prompt_digest" in fields:
        needed.append("resume")
    if needed:
        fields["require"] = [*fields.get("require", []), *needed]
    return fields


def _is_never(pair: object) -> bool:
    return isinstance(pair, Sequence) and len(pair) == 2 and pair[1] == -math.inf


def _needs_samplers(fields: Mapping[str, Any]) -> bool:
    """Whether a pool that knows fewer samplers would leave something out."""
    off = {"typical_p": 1, "repeat_last_n": -1, "top_n_sigma": 0, "xtc_probability": 0, "dynatemp_range": 0}
    off["dry_multiplier"] = 0
    biases = fields.get("logit_bias")  # which encoding checks
    never = isinstance(biases, Sequence) and any(_is_never(pair) for pair in biases)
    return (
        never
        or bool(fields.get("logit_bias_text") or fields.get("bad_words"))
        or any(fields.get(name, value) != value for name, value in off.items())
    )


def embedding(prompt: str | Sequence[int], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a request for an embedding, which a pool that knows none refuses instead of making tokens."""
    return {**generation(prompt, parameters), "embed": True, "require": ["embed"]}


def ranking(query: str, document: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a request for the scores of a pair of texts."""
    return {**generation(query, parameters), "embed": True, "document": document, "require": ["document"]}


def check_limits(fields: Mapping[str, Any], limits: Mapping[str, int]) -> None:
    """What the pool said it takes, which another version of it may set lower than the protocol does."""
    prompt, stop, grammar = fields["prompt"], fields.get("stop", []), fields.get("grammar", "")
    ids = len(prompt) if not isinstance(prompt, str) and prompt and isinstance(prompt[0], int) else 0
    if (grammar or fields.get("grammar_kind", "gbnf") != "gbnf") and limits["grammar_bytes"] == 0:
        raise TooLong("the pool does not support grammars")
    for what, has, most in (
        ("ids of an output", len(fields.get("output", [])), limits["prompt_ids"]),
        ("ids of a prompt", ids, limits["prompt_ids"]),
        ("stop strings", len(stop), limits["stops"]),
        ("bytes of a stop string", max((len(each.encode()) for each in stop), default=0), limits["stop_bytes"]),
        ("stop ids", len(fields.get("stop_ids", [])), limits["stop_ids"]),
        ("log probabilities of an id", fields.get("logprobs", 0), limits["logprobs"] + 1),
        ("logit biases", len(fields.get("logit_bias", [])), limits["logit_bias"]),
        ("bytes of a grammar", len(grammar.encode()), limits["grammar_bytes"]),
    ):
        if has > most:
            raise TooLong(f"the pool accepts {most} {what}; this request has {has}")


class Encoded(NamedTuple):
    """A request that can be sent."""

    request_id: bytes
    wire: bytes
    seed: int
    given: tuple[int, int] = (0, 0)
    """Ids and bytes of text that it had before, if it is resumed."""


def encoded(request_id: bytes, fields: Mapping[str, Any], limits: Mapping[str, int]) -> Encoded:
    """The request with the bytes of its generate; `BadRequest` or `TooLong` when no pool, or not this one, would take them."""
    try:
        wire = _codec.encode("generate", {"id": request_id, **fields})
    except Malformed as wrong:
        raise BadRequest(str(wrong).removeprefix("generate: ")) from None
    check_limits(fields, limits)
    if len(wire) > most_bytes(limits):
        raise TooLong(_too_long(wire, limits))
    return Encoded(request_id, wire, fields["seed"], (len(fields.get("output", ())), fields.get("off", 0)))


def most_bytes(limits: Mapping[str, int]) -> int:
    """Of a generate, in one message or, where the pool takes them, in parts."""
    return max(limits["request_bytes"], limits["generate_bytes"])


def _too_long(wire: bytes, limits: Mapping[str, int]) -> str:
    return f"the request has {len(wire)} bytes; the pool accepts {most_bytes(limits)}"


def parts(request_id: bytes, wire: bytes, tenant: str, limits: Mapping[str, int]) -> Iterator[bytes]:
    """The messages that bring a generate: itself, or its parts where it is longer than a message may be."""
    if len(wire) <= limits["request_bytes"]:
        yield wire
        return
    size = min(PART_BYTES, limits["request_bytes"] - PART_HEAD)
    for at in range(0, len(wire), size):
        part = {"id": request_id, "total": len(wire), "at": at, "data": wire[at : at + size], "tenant": tenant}
        yield _codec.encode("generate_part", part)


def _floats(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(data) // 4}f", data)


def _logprobs(frame: Mapping[str, Any]) -> tuple[tuple[Logprob, ...], ...]:
    """Those of each id of a frame, with their pieces where it tells them."""
    pieces = iter(frame["pieces"] or ())
    rows = frame["logprobs"] or ()
    return tuple(tuple(Logprob(entry[0], entry[1], next(pieces, b"")) for entry in row) for row in rows)


# ---- its life ----


class Request:
    """One request of a session. `sink` gets each piece in order, and then exactly one with an end."""

    def __init__(self, made: Encoded, sink: Sink, now: float) -> None:
        self.id = made.request_id
        self.sink = sink
        self.wire = made.wire  # to send again, byte for byte; empty for an attached one
        self.tenant: str | None = None  # of `wire`, once it was sent in parts
        self.send_wait = SILENCE  # before it is sent again
        self.seed = made.seed
        self.state = "new"
        self.owner: bytes | None = None  # attaching to another session's: that session
        self.epoch: Epoch = (0, 0)
        self.given = made.given  # ids and bytes of text before anything was delivered
        self.next = made.given[0]  # ids delivered, or given
        self.off = made.given[1]  # bytes of text likewise
        self.sent_at = self.heard_at = now
        self.replaying = False
        self.replay_at = self.asked_at = 0.0  # the last asking for a page, and the first for this one
        self.page_wait = SILENCE
        self.fruitless = 0
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.cancel_wanted = False  # and not acknowledged yet
        self.cancel_at = 0.0
        self.cancels = 0  # sent and not answered: an unknown_request may be theirs
        self.told_count: int | None = None  # of ids in all, once the DEALER's end came
        self.told_end: dict[str, Any] = {}

    # -- going out --

    def send(self, session: Session) -> None:
        """Says the generate."""
        self.sent_at = self.heard_at = session.now
        if len(self.wire) > most_bytes(session.limits):  # of a pool that was started anew and takes less
            self.fail(session, "too_long", _too_long(self.wire, session.limits))
            return
        self.state = "sent"
        if len(self.wire) <= session.limits["request_bytes"]:
            session.send_bytes(self.wire)
            return
        if self.tenant is None:
            self.tenant = str(_codec.decode(self.wire)[1]["tenant"])
        for each in parts(self.id, self.wire, self.tenant, session.limits):
            session.send_bytes(each)

    def send_attach(self, session: Session) -> None:
        """Asks for the request, which the broker knows from before, or of another session."""
        self.state = "attaching"
        self.replaying = False
        self.sent_at = self.heard_at = session.now
        session.send("attach", {"session": self.owner, "id": self.id, "next": self.next})

    def ask(self, session: Session) -> None:
        """Asks for what is missing."""
        self.asked_at = session.now
        self._ask(session, max(SILENCE, PAGE_TIMES * session.page_took))

    def _ask(self, session: Session, wait: float) -> None:
        self.replaying = True
        self.replay_at = session.now
        self.page_wait = min(wait, PAGE_MOST)
        session.send("replay", {"id": self.id, "epoch": self.epoch, "next": self.next})

    def press_cancel(self, session: Session) -> None:
        """Says cancel to a pool that knows the request; again by the timer until it is acknowledged."""
        waits = self.cancels > 0 and session.now - self.cancel_at < SILENCE
        if self.cancel_wanted and self.state in ("sent", "live") and not waits and session.state == "open":
            self.cancel_at = session.now
            self.cancels += 1
            session.send("cancel", {"id": self.id})

    def opened(self, session: Session, again: bool) -> None:
        """The session is open, or open again."""
        self.cancels = 0  # their answers went with the session
        if self.state in ("new", "sent"):
            self.send_wait = SILENCE
            self.send(session)
        elif again or self.state == "attaching":
            self.send_attach(session)

    def tick(self, session: Session) -> None:
        """Says again what had no answer."""
        now = session.now
        self.press_cancel(session)
        if self.state == "new" and now - self.sent_at >= SILENCE:
            self.send(session)
        elif self.state == "sent":
            # Not to a broker that is silent altogether: large prompts would pile up on the way to it.
            if now - self.sent_at >= self.send_wait and session.heard_at > self.sent_at and not session.out:
                if len(self.wire) > session.limits["request_bytes"]:  # of which the link may have much on its way
                    self.send_wait = min(2 * self.send_wait, PAGE_MOST)
                self.send(session)
        elif self.state == "attaching" and now - self.sent_at >= SILENCE:
            self.send_attach(session)
        elif self.state == "live" and self.replaying:
            if now - self.replay_at >= self.page_wait:
                self._ask(session, 2 * self.page_wait)
        elif self.state == "live" and now - self.heard_at >= (END if self.told_count is not None else SILENCE):
            self.ask(session)

    # -- coming in, on the DEALER --

    def _renew(self, epoch: Epoch) -> None:
        self.epoch = max(self.epoch, epoch)

    def accepted(self, session: Session, message: Mapping[str, Any]) -> None:
        """The pool has taken it."""
        if self.state == "sent":
            self.state = "live"
        self.seed = message["seed"]
        self._renew(message["epoch"])
        self.heard_at = session.now
        self.press_cancel(session)

    def attached(self, session: Session, message: Mapping[str, Any]) -> None:
        """The pool has bound it to this session."""
        if self.state != "attaching":
            return
        self.state = "live"
        self.owner = None
        if self.next < message["from"]:  # another client has what is before
            self.given = (self.next, self.off) = (message["from"], message["off"])
        self._renew(message["epoch"])
        self.heard_at = session.now
        self.press_cancel(session)
        self.ask(session)

    def cancelled(self) -> None:
        """The pool has heard the cancel."""
        if self.cancels > 0:
            self.cancels -= 1
            self.cancel_wanted = False

    def end_told(self, session: Session, message: Mapping[str, Any]) -> None:
        """It is over, and has so many ids; the last frame is on its way, or lost."""
        if self.state == "sent":
            self.state = "live"
        self.told_count = message["count"]
        self.told_end = message["end"]
        self.heard_at = session.now

    def refused(self, session: Session, message: Mapping[str, Any]) -> None:
        """An error that names this request: of the generate, the attach, a replay or a cancel."""
        unknown, of = message["error"] == "unknown_request", message.get("of")
        # An older broker does not say what it answers.
        if of == "cancel" or (of is None and self.state == "live" and unknown and self.cancels > 0):
            # It ended while the cancel was under way, and its end is too; or is not known yet, and will be told again.
            self.cancels -= self.cancels > 0
            self.cancel_wanted = self.cancel_wanted and self.state != "live"
            return
        if self.state == "live" and not (unknown and self.replaying):
            return
        if self.state != "live" and of == "replay":
            return  # of before the session was opened again
        if unknown and self.owner is None and self.state != "sent":
            self._forgotten(session)
        else:
            self.fail(session, message["error"], message["text"], message["retry_after_ms"])

    def _forgotten(self, session: Session) -> None:
        """The broker does not know it, though it had accepted it once."""
        if self.told_count is not None and self.next == self.told_count:
            self._deliver(session, "", (), (), self._end_of(self.told_end))
        elif self.wire and (self.next, self.off) == self.given and self.told_count is None:
            # To this broker nothing that came of an earlier one counts, its epoch least of all: a machine that starts
            # with an empty run directory counts its boots from one.
            self.epoch = (0, 0)
            self.replaying = False
            self.fruitless = 0
            self._take_held()
            self.send(session)
        else:
            text = f"the broker no longer knows this request; {self.next} token{'s' * (self.next != 1)} had arrived"
            self.fail(session, "worker_lost", text)

    # -- coming in, frames --

    def frame(self, session: Session, fields: Mapping[str, Any], data: bytes) -> None:
        """A frame of the stream; `data` is what it was read from."""
        self.heard_at = session.now
        if self.state == "sent":
            self.state = "live"  # `accepted` is on its way, on another socket
        self._live(session, fields, data)

    def progress(self, session: Session, fields: Mapping[str, Any]) -> None:
        """How much of the prompt is read, as the newest attempt says as long as nothing came of the output."""
        self.heard_at = session.now
        if self.state == "sent":
            self.state = "live"
        if (self.next, self.off) != self.given or fields["epoch"] < self.epoch or self.state == "attaching":
            return
        self.epoch = fields["epoch"]
        done = Progress(fields["total"], fields["cached"], fields["read"])
        self.sink(Piece("", (), 0, progress=done))

    def _leaves_gap(self, fields: Mapping[str, Any]) -> bool:
        return bool(fields["seq"] > self.next or fields["off"] > self.off)

    def _live(self, session: Session, fields: Mapping[str, Any], data: bytes) -> bool:
        """True when the request is over."""
        if fields["epoch"] < self.epoch:
            return False
        self.epoch = fields["epoch"]
        if self.replaying or self.state == "attaching":
            self._hold(data)
            return False
        if self._leaves_gap(fields):
            self._hold(data)
            self.ask(session)
            return False
        return self._frame(session, fields)

    def _hold(self, data: bytes) -> None:
        if len(self.held) < HELD_FRAMES and self.held_bytes + len(data) <= HELD_BYTES:
            self.held.append(data)
            self.held_bytes += len(data)

    def _take_held(self) -> list[bytes]:
        held, self.held, self.held_bytes = self.held, [], 0
        return held

    def page(self, session: Session, message: Mapping[str, Any]) -> None:
        """A page of a replay."""
        self.heard_at = session.now
        if not self.replaying:
            return
        had = (self.next, self.off)
        for data in message["frames"]:
            try:
                kind, fields = _codec.decode(data)
            except Malformed:
                kind, fields = "", {}
            if kind != "frame" or fields["id"] != self.id:
                self.fail(session, "internal", "the broker replayed a frame of another request")
                return
            if self._leaves_gap(fields):
                self._lost(session)
                return
            if self._frame(session, fields):
                return
        self._renew(message["epoch"])
        if not message["done"] and (self.next, self.off) == had:
            return  # no progress, and no end: the timer asks again, not we at once
        # The last page of a replay is mostly small, and says little of how long others take.
        took = session.now - self.asked_at
        if not message["done"] or took > session.page_took:
            session.page_took = took
        if not message["done"]:
            self.ask(session)
            return
        self.replaying = False
        over = False
        for data in self._take_held():
            over = over or self._live(session, _codec.decode(data)[1], data)
        if not over and not self.replaying:
            self._settle(session)

    def _settle(self, session: Session) -> None:
        """The broker has no more for now, and the end did not come with it, though it was told."""
        if self.told_count is None:
            return
        self.fruitless += 1
        if self.fruitless < FRUITLESS:
            return
        if self.next == self.told_count:
            self._deliver(session, "", (), (), self._end_of(self.told_end))
        else:
            self._lost(session)

    def _frame(self, session: Session, fields: Mapping[str, Any]) -> bool:
        """Delivers what of a frame is new. True when the request is over."""
        known = min(self.next - fields["seq"], len(fields["ids"]))
        ids = tuple(fields["ids"][known:])
        data = fields["text"].encode()
        rest = data[min(self.off - fields["off"], len(data)) :]
        end = fields["end"]
        if not ids and not rest and end is None:
            return False
        try:
            text = fields["text"] if len(rest) == len(data) else rest.decode()
        except UnicodeDecodeError:
            self.fail(session, "internal", f"the output was cut inside a character at byte {self.off}")
            return True
        logprobs = _logprobs(fields)[known:]
        self.off += len(rest)
        self.fruitless = 0
        vector = _floats(fields["embedding"])
        digest = fields["prompt_digest"]
        last = self._end_of(end) if end is not None else None
        return self._deliver(session, text, ids, logprobs, last, vector, digest)

    # -- delivery: the one place where a request ends --

    def _end_of(self, end: Mapping[str, Any]) -> End:
        return End(
            reason=end["reason"],
            error=end["error"] or "",
            text=printable(end["text"]),
            seed=self.seed,
            **end["usage"],
            **end["timing"],
            stop=end["stop"],
            limit=end["limit"] or "",
            lost=end["lost"],
        )

    def _deliver(
        self,
        session: Session,
        text: str,
        ids: tuple[int, ...],
        logprobs: tuple[tuple[Logprob, ...], ...],
        end: End | None,
        vector: tuple[float, ...] = (),
        digest: bytes | None = None,
    ) -> bool:
        piece = Piece(text, ids, self.next, logprobs, end, vector, prompt_digest=digest)
        self.next += len(ids)
        if end is not None:
            session.forget(self)
        self.sink(piece)
        return end is not None

    def end_unsent(self, session: Session) -> None:
        """Cancelled before the pool has heard of it."""
        self._deliver(session, "", (), (), End("cancelled", seed=self.seed))

    def is_orphaned(self) -> bool:
        """Whether the pool may go on with it for nobody, once this client gives it up: not one that it shall keep, or
        has from another session."""
        sent = self.state != "new" and bool(self.wire)
        return sent and _codec.decode(self.wire)[1].get("on_disconnect") != "keep"

    def _lost(self, session: Session) -> None:
        self.fail(session, "worker_lost", f"the pool no longer has the output from token {self.next} on")

    def fail(self, session: Session, error: str, text: str, retry_after_ms: int = 0) -> None:
        """Ends it, for a reason that is not the pool's last word in a frame."""
        end = End("error", error, printable(text), retry_after_ms, self.seed, output_tokens=self.next)
        self._deliver(session, "", (), (), end)


def printable(text: str) -> str:
    """A text of the pool, fit for a terminal: whoever passes for a broker must not steer it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
