# SPDX-License-Identifier: MIT
"""The client against a stream that loses, reorders and repeats."""

from __future__ import annotations

import random
from collections import deque

import pytest

from fake_broker import AFTER_REPLAY, END, FORGET, MOVE, STALE, Broker, Gathered, World, text_of
from quern import _codec, _request


def play(n_frames, script, **config):
    """Plays a script, checks that all of it arrives. The replays, and the seconds, that it took."""
    world = World(n_frames=n_frames, script=script, **config).open()
    got, seconds = world.generate(logprobs=2)
    got.check_whole(n_frames)
    assert not world.session.requests
    return world.broker.counts["replay"], seconds


def test_frames_in_order_need_no_replay():
    assert play(4, [0, 1, 2, 3, END])[0] == 0


def test_an_end_that_overtakes_its_frames_is_waited_for():
    assert play(4, [0, 1, END, 2, 3])[0] == 0


def resume(known, script, **config):
    """Resumes a request behind so many frames, and checks that the rest arrives."""
    world = World(n_frames=8, script=script, **config).open()
    got, request = world.send(output=range(2 * known), off=len(texts(known)), seed=3, lost=1, prompt_digest=bytes(16))
    got.ids, got.text = list(range(2 * known)), texts(known).decode()
    world.until(lambda: got.end is not None)
    got.logprobs = [row for i in range(known) for row in logprobs_of(world, request, i)] + got.logprobs
    return world, got


def texts(n):
    return "".join(text_of(i) for i in range(n)).encode()


def logprobs_of(world, request, i):
    return _request._logprobs(_codec.decode(_codec.encode("frame", world.broker.frame(request, i)))[1])


@pytest.mark.parametrize("script", [[3, 4, 5, 6, 7], [4, 3, 6, 7], [7], [5, AFTER_REPLAY, 6, 7], [3, FORGET]])
def test_a_resumed_request_brings_the_rest(script):
    more = {"next_script": [4, 6, 5]} if FORGET in script else {}
    world, got = resume(3, script, page_frames=2, **more)
    got.check_whole(8)
    said = world.broker.generates[0]
    assert (said["output"], said["off"], said["lost"]) == ([0, 1, 2, 3, 4, 5], len(texts(3)), 1)
    assert said["prompt_digest"] == bytes(16) and said["require"] == ["resume"] and said["seed"] == 3


def test_a_resumed_request_of_which_nothing_came_is_sent_again():
    world, got = resume(3, [FORGET], forgets_requests=True, next_script=[3, 5, 4, 6, 7])
    got.check_whole(8)
    assert [said["off"] for said in world.broker.generates] == 2 * [len(texts(3))]


def test_who_attaches_to_a_resumed_request_gets_what_the_pool_has():
    world = World(n_frames=8, script=[]).open()
    got, request = Gathered(), bytes(15) + b"a"
    world.broker.requests[request] = deque([3, 4, 5, 6, 7])
    world.broker.given = (6, len(texts(3)))
    world.session.attach(request, bytes(16), got, world.now)
    got.ids, got.text = list(range(6)), texts(3).decode()
    world.until(lambda: got.end is not None)
    assert got.ids == list(range(16)) and got.text == texts(8).decode()


def test_the_first_frame_says_which_prompt_it_is():
    world = World(n_frames=2, script=[]).open()
    pieces = []
    world.session.submit(_request.encoded(bytes(16), _request.generation("Hi", {}), world.session.limits), pieces.append, world.now)
    world.run(0.1)
    world.broker.publish(bytes(16), **{**world.broker.frame(bytes(16), 0), "prompt_digest": bytes(range(16))})
    end = world.broker.frame(bytes(16), 1)
    end["end"] = {**end["end"], "reason": "error", "error": "worker_lost", "lost": 3}
    world.broker.publish(bytes(16), **end)
    world.run(0.1)
    assert [piece.prompt_digest for piece in pieces] == [bytes(range(16)), None]
    assert pieces[-1].end.lost == 3


def test_lost_frames_are_replayed_page_by_page_at_once():
    replays, seconds = play(10, [0, 1, 8, 9], page_frames=3)
    assert replays == 3
    assert seconds < 0.1


def test_pages_follow_one_another_without_a_wait():
    replays, seconds = play(200, [0, 199], page_frames=2)
    assert replays == 100
    assert seconds < 0.1


def test_reordered_and_repeated_frames_come_once_and_in_order():
    assert play(6, [1, 0, 3, 2, 2, 0, 4, 4, 5], page_frames=2)[0] > 0


def test_live_frames_during_a_replay_wait_for_their_turn():
    assert play(8, [0, 3, AFTER_REPLAY, 4, 6, 5, 7, 5, 6, 7], page_frames=2)[0] > 1


def test_what_was_held_is_delivered_when_the_replay_is_done():
    world = World(n_frames=6, script=[0, 2], no_replays=True).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    for i in (3, 4, 5):
        world.broker.publish(request, **world.broker.frame(request, i))
    world.run(0.1)
    assert got.ids == [0, 1]
    page = [_codec.encode("frame", world.broker.frame(request, 1))]
    world.broker.reply("replay_ok", **{"id": request, "epoch": (5, 0), "from": 2, "next": 4, "done": True,
                                       "frames": page})
    world.step()
    got.check_whole(6)


@pytest.mark.parametrize("first", [[0], [END]])
def test_what_overtakes_the_verdict_says_as_much(first):
    world = World(n_frames=2, script=first, no_verdicts=True).open()
    got, _ = world.generate(logprobs=2)
    got.check_whole(2)
    assert world.broker.counts["generate"] == 1


def test_frames_of_another_session_are_not_seen():
    world = World(n_frames=2, script=[0]).open()
    got, request = world.send()
    world.run(0.1)
    data = _codec.encode("frame", world.broker.frame(request, 1))
    world.session.published(bytes(16) + request, data, world.now)
    assert got.end is None
    world.session.published(world.session.id + request, data, world.now)
    assert got.end is not None


def test_a_stream_that_lost_everything_is_made_good_soon_after_the_end():
    replays, seconds = play(5, [END], page_frames=2)
    assert replays == 3
    assert 0.1 <= seconds < 0.3


def test_silence_is_asked_about_after_a_second():
    replays, seconds = play(5, [0])
    assert replays == 1
    assert 1.0 <= seconds < 1.2


def test_the_last_frame_alone_can_be_lost():
    assert play(4, [0, 1, 2, END])[0] == 1


def test_frames_of_an_older_epoch_are_not_seen():
    assert play(4, [STALE, 0, STALE, MOVE, 1, STALE, 2, 3])[0] == 0


def test_a_page_that_is_lost_is_asked_for_again():
    world = World(n_frames=3, script=[0], no_replays=True).open()
    got, _ = world.send(logprobs=2)
    world.run(3.5)
    assert got.end is None
    assert world.broker.counts["replay"] in (2, 3)
    world.broker.no_replays = False
    world.until(lambda: got.end is not None)
    got.check_whole(3)


def test_where_pages_take_long_none_is_asked_for_while_it_may_be_on_its_way():
    world = World(n_frames=40, script=[0], page_frames=8, page_seconds=2.5).open()
    got, _ = world.send(logprobs=2)
    world.until(lambda: got.end is not None)
    got.check_whole(40)
    # Five pages; the first one is asked for a second time, for nothing is known by then of how long one takes.
    assert world.broker.counts["replay"] == 6


def test_frames_that_are_held_are_bounded_and_what_was_dropped_is_replayed(monkeypatch):
    monkeypatch.setattr("quern._request.HELD_FRAMES", 3)
    world = World(n_frames=40, script=[0, *range(2, 30)], page_frames=4, no_replays=True).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    assert len(world.session.requests[request].held) == 3
    world.broker.no_replays = False
    world.until(lambda: got.end is not None)
    got.check_whole(40)


def test_a_frame_of_which_a_part_is_known_delivers_the_rest():
    world = World(n_frames=4, script=[0]).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    joined = {**world.broker.frame(request, 1), "seq": 0, "off": 0, "ids": [0, 1, 2, 3],
              "text": "<0é><1é>", "logprobs": [[(i, -1.0), (7, -2.0)] for i in range(4)]}
    world.broker.publish(request, **joined)
    for i in (2, 3):
        world.broker.publish(request, **world.broker.frame(request, i))
    world.until(lambda: got.end is not None)
    got.check_whole(4)


def test_what_cannot_be_read_is_passed_over():
    world = World(n_frames=4, script=[0]).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    topic = world.session.id + request
    for topic_, data in ((topic, b""), (topic, b"\xc1"), (topic, b"\x81\xa1k\xa5frame"), (b"", b"\x81\xa1k\xa3bye"),
                         (bytes(32), b"\x81\xa1k\xa3bye")):
        world.session.published(topic_, data, world.now)
        world.session.received(data, world.now)
    for i in (1, 2, 3):
        world.broker.publish(request, **world.broker.frame(request, i))
    world.until(lambda: got.end is not None)
    got.check_whole(4)


def test_a_broker_that_replays_nonsense_ends_the_request_with_a_reason():
    world = World(n_frames=4, script=[0]).open()
    got, request = world.send()
    world.run(0.1)
    world.session.requests[request].ask(world.session)
    world.broker.reply("replay_ok", **{"id": request, "epoch": (5, 0), "from": 2, "next": 4, "frames": [b"\xc1"]})
    world.step()
    assert (got.end.reason, got.end.error) == ("error", "internal")


def test_tokens_that_the_journal_lost_end_the_request_with_a_reason():
    world = World(n_frames=9, script=[0]).open()
    got, request = world.send()
    world.run(0.1)
    world.session.requests[request].ask(world.session)
    frames = [_codec.encode("frame", world.broker.frame(request, 5))]
    world.broker.replies.clear()
    world.broker.reply("replay_ok", **{"id": request, "epoch": (5, 0), "from": 2, "next": 12, "frames": frames})
    world.step()
    assert (got.end.reason, got.end.error) == ("error", "worker_lost")
    assert "from token 2 on" in got.end.text


def test_an_end_that_was_told_but_never_came_is_believed_when_all_tokens_are_here(monkeypatch):
    world = World(n_frames=3, script=[0, 1, END]).open()
    got, _ = world.send()

    def without_last(fields):
        world.broker.reply("replay_ok", **{"id": fields["id"], "epoch": (5, 0), "from": fields["next"], "next": 4,
                                           "done": True})

    monkeypatch.setattr(world.broker, "on_replay", without_last)
    world.until(lambda: got.end is not None)
    assert (got.end.reason, got.end.error) == ("error", "worker_lost")  # two of six tokens never came


class Weather:
    """What happens to frames between broker and client."""

    def __init__(self, chance):
        self.chance = chance
        self.loss, self.double, self.mix = chance.random() * 0.7, chance.random() * 0.3, chance.random() * 0.5

    def __call__(self, frames):
        out = []
        for frame in frames:
            if len(frame[0]) == 32 and self.chance.random() < self.loss:
                continue
            out.append(frame)
            if self.chance.random() < self.double:
                out.append(frame)
        if self.chance.random() < self.mix:
            self.chance.shuffle(out)
        return out


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_whatever_the_weather_every_token_comes_once(first_seed):
    """Loss, repetition and disorder of frames, moves, stale frames, restarts that keep requests: everything arrives."""
    for seed in range(first_seed, first_seed + 50):
        chance = random.Random(seed)
        n_frames = chance.randrange(1, 40)
        script = []
        for i in range(n_frames):
            script += chance.choice([[i], [i], [i, END], [STALE, i], [MOVE, i], [i, AFTER_REPLAY], [FORGET, i]])
        broker = Broker(n_frames, script, page_frames=chance.randrange(1, 9), hellos_refused=chance.randrange(3),
                        welcomes_lost=chance.randrange(3), cancels_lost=chance.randrange(2))
        # A stale frame cannot be told from the first of all before `accepted` was heard.
        frames_first = STALE not in script and chance.random() < 0.5
        world = World(broker, Weather(chance), frames_first=frames_first).open()
        got, _ = world.send(logprobs=2)
        world.until(lambda got=got: got.end is not None, 600)
        got.check_whole(n_frames)
        world.run(3)
        assert broker.taken.count(next(iter(broker.requests))) == 1, seed
