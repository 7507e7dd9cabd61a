# SPDX-License-Identifier: MIT
"""A broker in memory, and the world in which a session meets it: no sockets, no threads, a clock that the test moves.

The broker opens sessions properly; for a generate it plays a script of what it puts on the stream. Steps: the number of
a frame, or END (`end` on the DEALER), STALE (a frame of an older epoch with ids that must not be seen), AFTER_REPLAY
(what follows is published when a replay was asked for, before it is answered), MOVE (the epoch grows), FORGET (it
restarts: another boot, no session known). Whatever the script leaves out is in its journal, and comes by replay.
"""

from __future__ import annotations

import struct
from collections import Counter, deque

from quern import _codec, _request
from quern._session import Session

END, STALE, AFTER_REPLAY, MOVE, FORGET = "end", "stale", "after replay", "move", "forget"
LIMITS = {"request_bytes": 4096, "generate_bytes": 16384, "prompt_ids": 8, "stops": 2, "stop_bytes": 4,
          "stop_ids": 3, "logprobs": 1, "logit_bias": 1, "grammar_bytes": 8}
USAGE = {"prompt_tokens": 3, "cached_tokens": 0}
TIMING = {"queue_ms": 1.0, "prefill_ms": 2.0, "decode_ms": 3.0}


def text_of(frame):
    return f"<{frame}é>"


class Broker:
    """`published` and `replies` hold what the session is to get."""

    def __init__(self, n_frames=4, script=(), **config):
        self.n_frames, self.script = n_frames, list(script)
        self.page_frames = 100
        self.next_script = None  # after FORGET, if it differs
        self.next_boot = None  # then; None: one more than before
        self.forgets_requests = False  # after FORGET
        self.refusal = None  # a generate is answered with this error
        self.silent = False  # answers nothing but the opening
        self.dead = False  # answers nothing
        self.hellos_refused = 0  # after FORGET, or at first with refuses_first
        self.refuses_first = False
        self.no_replays = False
        self.page_seconds = 0.0  # each page takes so long to come, one behind the other
        self.no_verdicts = False  # a generate is not answered
        self.cancels_unknown = False
        self.cancels_lost = 0
        self.loses_embeddings = False  # they are not in its journal
        self.welcomes_lost = 0
        self.joins_refused = 0  # after FORGET, or at first with refuses_first
        self.versions = (1, 1)
        self.stream = ["tcp://10.0.0.1:1", "ipc:///run/quern/stream"]
        self.status_lost = 0
        self.given = (0, 0)  # ids and bytes of text before what it has of any request
        self.__dict__.update(config)
        self.boot, self.move = 5, 0
        self.session = None
        self.forgot = False
        self.requests = {}  # id: the rest of its script
        self.waiting = set()
        self.embeddings = {}  # id: the frame that has it
        self.counts = Counter()
        self.taken = []
        self.cancelled = []
        self.generates = []
        self.replies, self.published = deque(), deque()
        self.pages = deque()  # on their way

    # -- what it says --

    def reply(self, kind, **fields):
        self.replies.append(_codec.encode(kind, fields))

    def publish(self, request, kind="frame", **fields):
        topic = self.session + (request or b"")
        self.published.append((topic, _codec.encode(kind, fields)))

    def frame(self, request, i, move=None, boot=None):
        end = None
        if i == self.n_frames - 1:
            end = {"reason": "length", "usage": {**USAGE, "output_tokens": 2 * self.n_frames}, "timing": TIMING}
        return {"id": request, "epoch": (self.boot if boot is None else boot, self.move if move is None else move),
                "seq": 2 * i, "ids": [2 * i, 2 * i + 1], "text": text_of(i),
                "off": sum(len(text_of(j).encode()) for j in range(i)), "end": end,
                "logprobs": [[(2 * i, -0.5), (7, -1.0)], [(2 * i + 1, -0.25), (8, -2.0)]]}

    def restart(self):
        self.session = None
        self.forgot = True
        self.boot = self.boot + 1 if self.next_boot is None else self.next_boot
        self.move = 0
        if self.forgets_requests:
            self.requests.clear()

    # -- what it does --

    def play(self, request):
        script = self.requests[request]
        while script:
            step = script.popleft()
            if step == END:
                end = self.frame(request, self.n_frames - 1)["end"]
                self.reply("end", id=request, epoch=(self.boot, self.move), count=2 * self.n_frames, end=end)
            elif step == STALE:
                wrong = {**self.frame(request, self.n_frames - 1, boot=self.boot - 1, move=9), "seq": 0, "off": 0,
                         "ids": [666, 667], "text": "wrong"}
                self.publish(request, **wrong)
            elif step == MOVE:
                self.move += 1
            elif step == FORGET:
                self.restart()
                return
            elif step == AFTER_REPLAY:
                self.waiting.add(request)
                return
            else:
                self.publish(request, **self.frame(request, step))

    def take(self, data):
        kind, fields = _codec.decode(data)
        self.counts[kind] += 1
        if self.dead:
            return
        if kind == "hello":
            self.on_hello(fields)
        elif self.session is None:
            self.reply("error", error="hello_required", text="hello first")
        elif kind == "join":
            if self.joins_refused > 0 and (self.forgot or self.refuses_first):
                self.joins_refused -= 1
                self.reply("error", of="join", error="overloaded", text="too many subscriptions", retry_after_ms=70)
            elif self.welcomes_lost > 0:
                self.welcomes_lost -= 1
            else:
                self.publish(None, kind="welcome", nonce=fields["nonce"])
        elif not self.silent:
            getattr(self, "on_" + kind)(fields)

    def on_hello(self, fields):
        if self.hellos_refused > 0 and (self.forgot or self.refuses_first):
            self.hellos_refused -= 1
            self.reply("error", error="overloaded", text="too many sessions", retry_after_ms=70)
            return
        self.session = fields["session"]
        self.reply("hello_ok", proto=self.versions, boot=self.boot, stream=self.stream, limits=LIMITS, lease_ms=5000,
                   models=[{"name": "fake", "digest": bytes([7]) * 16, "context": 512, "chat": True}])

    def on_generate_part(self, fields):
        if fields["at"] == 0:
            self.part = b""
        assert fields["at"] == len(self.part)
        self.part += fields["data"]
        if len(self.part) == fields["total"]:
            self.take(self.part)

    def on_generate(self, fields):
        request = fields["id"]
        self.generates.append(fields)
        if self.refusal:
            self.reply("error", id=request, error=self.refusal, text="\x1b[31mfull\x07", retry_after_ms=70)
            return
        again = request in self.requests
        if not self.no_verdicts:
            self.reply("accepted", id=request, epoch=(self.boot, self.move), seed=fields["seed"], again=again)
        if not again:
            later = self.forgot and self.next_script is not None
            self.requests[request] = deque(self.next_script if later else self.script)
            if fields["embed"]:
                self.embed(request)
            else:
                self.play(request)

    def embed(self, request):
        end = {"reason": "stop", "usage": {**USAGE, "output_tokens": 0}, "timing": TIMING}
        self.embeddings[request] = {"id": request, "epoch": (self.boot, self.move), "seq": 0, "off": 0, "ids": [],
                                    "text": "", "embedding": struct.pack("<2f", 0.6, -0.8), "end": end}
        self.publish(request, **self.embeddings[request])
        self.reply("end", id=request, epoch=(self.boot, self.move), count=0, end=end)

    def on_replay(self, fields):
        request = fields["id"]
        if self.no_replays:
            return
        if request not in self.requests:
            self.reply("error", id=request, error="unknown_request", text="unknown")
            return
        if request in self.waiting:
            self.waiting.discard(request)
            self.play(request)
        if request in self.embeddings:
            frames = [] if self.loses_embeddings else [_codec.encode("frame", self.embeddings[request])]
            self.reply("replay_ok", **{"id": request, "epoch": (self.boot, self.move), "from": 0, "next": 0,
                                       "done": True, "frames": frames})
            return
        first = fields["next"] // 2
        last = min(first + self.page_frames, self.n_frames)
        frames = [_codec.encode("frame", self.frame(request, i, move=0)) for i in range(first, last)]
        page = _codec.encode("replay_ok", {"id": request, "epoch": (self.boot, self.move), "from": fields["next"],
                                           "next": 2 * last, "done": last == self.n_frames, "frames": frames})
        if self.page_seconds:
            self.pages.append(page)
        else:
            self.replies.append(page)

    def on_attach(self, fields):
        request = fields["id"]
        if request not in self.requests:
            self.reply("error", id=request, error="unknown_request", text="unknown")
            return
        begins = {"from": self.given[0], "off": self.given[1]}
        self.reply("attach_ok", id=request, epoch=(self.boot, self.move), next=2 * self.n_frames, **begins)
        self.play(request)

    def on_cancel(self, fields):
        if self.cancels_unknown:
            self.reply("error", id=fields["id"], error="unknown_request", text="unknown")
        elif self.cancels_lost > 0:
            self.cancels_lost -= 1
        else:
            self.cancelled.append(fields["id"])
            self.reply("cancel_ok", id=fields["id"])

    def on_status(self, fields):
        if self.status_lost > 0:
            self.status_lost -= 1
            return
        worker = {"name": "worker-0", "state": "failed", "reason": "no\x1b such file"}
        self.reply("status_ok", ref=fields["ref"], boot=self.boot, version="1.2.3", workers=[worker])

    def on_tokenize(self, fields):
        if fields["model"] == "none":
            self.reply("error", ref=fields["ref"], error="no_worker", text="none is ready")
        else:
            self.reply("tokenize_ok", ref=fields["ref"], ids=[4, 5, 6])

    def on_ping(self, fields):
        self.taken += fields["taken"]
        self.reply("pong", ref=fields["ref"])

    def on_bye(self, _fields):
        self.session = None
        self.reply("bye_ok")


class Gathered:
    """What a request's sink got: ids in order and once, nothing after the end."""

    def __init__(self):
        self.ids, self.text, self.end, self.logprobs = [], "", None, []

    def __call__(self, piece):
        assert self.end is None, "something came after the end"
        assert piece.index == len(self.ids)
        self.ids += piece.ids
        self.text += piece.text
        self.logprobs += piece.logprobs
        self.end = piece.end

    def check_whole(self, n_frames):
        assert self.end is not None
        assert (self.end.reason, self.end.error) == ("length", ""), self.end
        assert self.ids == list(range(2 * n_frames))
        assert self.text == "".join(text_of(i) for i in range(n_frames))
        assert [row[0].id for row in self.logprobs] == self.ids


class World:
    """A session, its broker, and time. `faults` decides what becomes of the frames that are published: it gets the list
    of those under way and returns the list of those that arrive."""

    def __init__(self, broker=None, faults=None, patience=30.0, frames_first=False, **config):
        self.broker = broker or Broker(**config)
        self.faults = faults or (lambda frames: frames)
        self.frames_first = frames_first  # what is on the stream overtakes the DEALER
        self.now = 1000.0
        self.page_at = 0.0  # when the next page has come
        self.sent = 0
        self.session = Session("ipc:///run/quern/frontend", self.now, patience)

    def step(self):
        """Everything that is under way arrives. False when nothing was."""
        moved = False
        while self.session.out:
            moved = True
            self.broker.take(self.session.out.popleft())
        frames = list(self.broker.published)
        self.broker.published.clear()
        if not self.frames_first:
            moved |= self.hear()
        for topic, data in self.faults(frames):
            self.session.published(topic, data, self.now)
        return self.hear() or moved or bool(frames)

    def hear(self):
        heard = bool(self.broker.replies)
        while self.broker.replies:
            self.session.received(self.broker.replies.popleft(), self.now)
        return heard

    def run(self, seconds):
        """Time goes on, in steps of 20 ms."""
        end = self.now + seconds
        while self.now < end:
            if not self.broker.pages:
                self.page_at = self.now + self.broker.page_seconds
            elif self.now >= self.page_at:
                self.broker.replies.append(self.broker.pages.popleft())
                self.page_at = self.now + self.broker.page_seconds
            for _ in range(10_000):
                if not self.step():
                    break
            else:
                raise AssertionError("session and broker talk without end")
            self.now += 0.02
            self.session.tick(self.now)

    def until(self, condition, seconds=60):
        """Time goes on until it holds. The seconds that it took."""
        begun = self.now
        while not condition():
            assert self.now - begun < seconds, f"not within {seconds} s"
            self.run(0.02)
        return self.now - begun

    def open(self):
        self.until(lambda: self.session.state == "open")
        return self

    def send(self, prompt="Hi", **parameters):
        """Sends a request; what comes of it, and its id."""
        self.sent += 1
        request_id = self.sent.to_bytes(16, "big")
        fields = _request.generation(prompt, parameters)
        got = Gathered()
        self.session.submit(_request.encoded(request_id, fields, self.session.limits), got, self.now)
        return got, request_id

    def generate(self, **parameters):
        """Sends one and waits for its end. What came, and the seconds that it took."""
        got, _ = self.send(**parameters)
        return got, self.until(lambda: got.end is not None)
