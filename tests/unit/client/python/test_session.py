# SPDX-License-Identifier: MIT
"""Sessions: opening, keeping, losing and opening again; and what is asked and answered."""

from __future__ import annotations

import pytest

import quern
from fake_broker import END, FORGET, Broker, World


class Answer:
    def __init__(self):
        self.value = None

    def __call__(self, value):
        assert self.value is None, "answered twice"
        self.value = value


def ask(world, kind="status", timeout=5.0, **fields):
    answer = Answer()
    world.session.ask(kind, fields, answer, timeout, world.now)
    return answer


# ---- opening ----


def test_a_session_opens_and_says_what_the_pool_serves():
    world = World().open()
    assert world.session.models == (quern.Model("fake", bytes([7]) * 16, 512, 0, True),)
    assert world.session.limits["request_bytes"] == 4096
    assert world.session.boot == 5


def test_a_long_prompt_goes_in_parts_and_is_one_request():
    world = World(n_frames=3).open()
    got, _ = world.generate(prompt="x" * 9000)
    assert got.end.reason == "length" and world.broker.counts["generate_part"] == 3
    assert [each["prompt"] for each in world.broker.generates] == ["x" * 9000]


def test_a_long_prompt_that_a_restart_cuts_short_is_sent_from_its_beginning():
    world = World(n_frames=3).open()
    got, _ = world.send(prompt="x" * 9000)
    sent = list(world.session.out)
    world.session.out.clear()
    world.broker.take(sent[0])
    world.broker.restart()
    for each in sent[1:]:
        world.broker.take(each)
    world.until(lambda: got.end is not None)
    assert got.end.reason == "length"
    assert [each["prompt"] for each in world.broker.generates] == ["x" * 9000]


def test_a_welcome_that_is_lost_is_asked_for_again():
    world = World(welcomes_lost=3)
    assert world.until(lambda: world.session.state == "open") < 0.5
    assert world.broker.counts["join"] == 4


def test_joins_become_rarer_and_only_the_last_is_answered():
    world = World(welcomes_lost=10**6)
    world.run(8)
    assert 8 <= world.broker.counts["join"] <= 16
    world.broker.publish(None, kind="welcome", nonce=world.session._nonce ^ 1)
    world.run(0.1)
    assert world.session.state == "join"


def test_what_cannot_go_out_is_not_piled_up():
    world = World(n_frames=9, script=[0]).open()
    world.send()
    ask(world, "tokenize", 60, text="Hi")
    for _ in range(1000):  # a socket that takes nothing
        world.now += 0.02
        world.session.tick(world.now)
    assert len(world.session.out) < 5


def test_a_stream_is_reached_the_way_the_broker_was_or_not_at_all():
    world = World().open()
    assert world.session.stream_endpoint == "ipc:///run/quern/stream"
    world = World(stream=["tcp://127.0.0.1:1"])
    world.run(0.1)
    assert isinstance(world.session.broken, quern.Unsupported)
    assert world.session.stream_endpoint is None


def test_a_pool_of_another_version_is_told_apart():
    world = World(versions=(2, 3))
    world.run(0.1)
    assert isinstance(world.session.broken, quern.Unsupported)
    assert "versions 2 to 3" in str(world.session.broken)


def test_a_pool_that_speaks_our_version_among_others_is_taken():
    assert World(versions=(1, 9)).open()


def test_a_broker_without_room_is_believed_at_the_first_hello():
    world = World(refuses_first=True, hellos_refused=1)
    world.run(0.1)
    assert isinstance(world.session.given_up, quern.Overloaded)
    assert world.session.given_up.retry_after == pytest.approx(0.07)
    assert world.until(lambda: world.session.state == "open") < 2  # and asked again after a second


def test_a_broker_without_room_for_a_listener_is_believed_at_the_first_join():
    world = World(refuses_first=True, joins_refused=1)
    world.run(0.1)
    assert isinstance(world.session.given_up, quern.Overloaded)
    assert "too many subscriptions" in str(world.session.given_up)
    assert world.session.given_up.retry_after == pytest.approx(0.07)


def test_a_broker_that_has_no_room_for_a_listener_for_now_is_asked_again():
    world = World(n_frames=3, script=[0, FORGET], joins_refused=2).open()
    got, _ = world.send()
    world.until(lambda: got.end is not None)
    assert got.end.reason == "length"
    assert world.broker.counts["hello"] == 2
    assert world.broker.counts["join"] >= 4


def test_a_broker_that_does_not_answer_is_asked_again_and_given_up():
    world = World(dead=True, patience=10)
    world.run(9)
    assert world.broker.counts["hello"] >= 8
    assert world.session.given_up is None
    got, _ = world.send()
    world.run(1.5)
    assert isinstance(world.session.given_up, quern.Unreachable)
    assert got.end.error == "unreachable"
    world.broker.dead = False
    world.open()
    assert world.session.given_up is None


def test_how_much_of_a_prompt_is_read_is_told_until_there_is_output():
    world = World(n_frames=2, script=[]).open()
    got, request = world.send()
    pieces, world.session.requests[request].sink = [], lambda piece: (pieces.append(piece), got(piece))

    def tell(read, boot=5, move=0):
        world.broker.publish(request, kind="progress", id=request, epoch=(boot, move), total=100, cached=32, read=read)
        world.run(0.1)
    tell(64)
    tell(50, boot=4)  # of a worker that lost it
    tell(100)
    assert [piece.progress for piece in pieces] == [quern.Progress(100, 32, 64), quern.Progress(100, 32, 100)]
    world.broker.publish(request, **world.broker.frame(request, 0))
    world.run(0.1)
    tell(100)
    assert len(pieces) == 3
    assert pieces[-1].progress is None


# ---- keeping ----


def test_pings_are_said_every_second():
    world = World().open()
    world.run(10)
    assert 9 <= world.broker.counts["ping"] <= 11


def test_the_broker_is_told_which_answers_were_taken_and_each_once():
    world = World(n_frames=2, script=[0, 1, END]).open()
    ids = []
    for _ in range(300):
        got, request = world.send()
        ids.append(request)
        world.until(lambda got=got: got.end is not None)
    world.run(0.3)
    assert sorted(world.broker.taken) == sorted(ids)


def test_what_was_taken_is_told_again_when_a_restart_swallowed_it():
    world = World(n_frames=2, script=[0, 1]).open()
    got, request = world.send()
    world.until(lambda: got.end is not None)
    world.broker.restart()
    world.run(3)
    assert world.broker.taken == [request]
    world.broker.restart()
    world.run(3)
    assert world.broker.taken == [request]  # and no more once it was heard


# ---- losing ----


def test_a_restarted_broker_is_met_again_and_the_request_goes_on():
    world = World(n_frames=6, script=[0, 1, FORGET, 2, 3, 4, 5]).open()
    got, _ = world.generate(logprobs=2)
    got.check_whole(6)
    assert world.broker.counts["hello"] == 2
    assert world.broker.counts["attach"] == 1
    assert world.broker.counts["generate"] == 1
    assert world.session.boot == 6


def test_what_was_only_queued_is_sent_again_to_a_restarted_broker():
    world = World(n_frames=4, script=[FORGET], next_script=[0, 1, 2, 3], forgets_requests=True).open()
    got, _ = world.generate(logprobs=2, seed=7)
    got.check_whole(4)
    first, second = world.broker.generates
    assert first == second
    assert got.end.seed == 7


def test_a_request_sent_again_streams_though_the_boot_number_fell():
    world = World(n_frames=4, script=[FORGET], next_script=[0, 1, 2, 3], forgets_requests=True, next_boot=1).open()
    got, _ = world.generate(logprobs=2)
    got.check_whole(4)
    assert world.broker.counts["replay"] == 0


def test_tokens_that_a_restart_lost_end_the_request_with_a_reason():
    world = World(n_frames=4, script=[0, 1, FORGET], forgets_requests=True).open()
    got, _ = world.generate()
    assert (got.end.reason, got.end.error) == ("error", "worker_lost")
    assert "4 tokens had arrived" in got.end.text


def test_a_broker_that_is_full_after_a_restart_is_asked_again():
    world = World(n_frames=6, script=[0, 1, FORGET, 2, 3, 4, 5], hellos_refused=3).open()
    got, seconds = world.generate(logprobs=2)
    got.check_whole(6)
    assert 2.5 < seconds < 6


def test_a_session_that_cannot_be_opened_again_ends_everything_with_a_reason():
    world = World(n_frames=6, script=[0, 1, FORGET], hellos_refused=1000, patience=8).open()
    got, seconds = world.generate()
    assert (got.end.reason, got.end.error) == ("error", "worker_lost")
    assert 7 < seconds < 10
    assert isinstance(world.session.given_up, quern.Unreachable)
    late, _ = world.send()
    world.until(lambda: late.end is not None)
    assert late.end.error == "unreachable"


def test_a_broker_that_falls_silent_ends_everything_with_a_reason():
    world = World(n_frames=4, script=[0], patience=4).open()
    got, _ = world.send()
    answer = ask(world, "tokenize", 60, text="Hi", model="none")
    world.broker.dead = True
    world.run(10)
    assert got.end.error == "worker_lost"
    assert "has not answered for 4." in got.end.text
    assert isinstance(answer.value, quern.Error)


def test_a_pool_that_comes_back_after_patience_was_lost_serves_what_is_asked_next():
    world = World(n_frames=4, script=[0], patience=4, no_replays=True).open()
    given_up, orphan = world.send()
    kept, keep = world.send(keep_s=60)
    world.run(0.1)
    world.broker.dead = True
    world.until(lambda: given_up.end is not None and kept.end is not None)
    assert (given_up.end.error, kept.end.error) == ("worker_lost", "worker_lost")
    world.run(50)  # as long as it takes: nobody waits
    world.broker.restart()
    world.broker.dead = world.broker.no_replays = False
    world.broker.script = [0, 1, 2, 3]
    got, _ = world.send(logprobs=2)
    answer = ask(world)
    world.until(lambda: got.end is not None)
    got.check_whole(4)
    assert answer.value["version"] == "1.2.3"
    # The pool need not go on with what was given up, but for what it is to keep.
    assert world.broker.cancelled == [orphan]
    assert keep not in world.broker.taken


def test_who_asks_after_patience_was_lost_has_all_of_it():
    world = World(n_frames=2, script=[0, 1], patience=8).open()
    world.broker.dead = True
    world.run(9.5)
    assert world.session.given_up is not None
    world.run(6)
    late, _ = world.send(logprobs=2)
    world.run(6)  # beyond the end of the second period
    assert late.end is None
    world.broker.dead = False
    world.until(lambda: late.end is not None)
    late.check_whole(2)


def test_who_was_stopped_for_long_does_not_blame_the_broker():
    world = World(n_frames=4, script=[0, 1, 2, 3], patience=4).open()
    world.now += 3600
    world.session.tick(world.now)
    got, _ = world.generate(logprobs=2)
    got.check_whole(4)


def test_what_was_asked_while_the_session_opens_is_sent_then():
    world = World(n_frames=2, script=[0, 1], welcomes_lost=4)
    got, _ = world.send(logprobs=2)
    gone, request = world.send()
    world.session.cancel(request, world.now)
    assert gone.end.reason == "cancelled"
    answer = ask(world)
    world.open()
    world.run(0.1)
    got.check_whole(2)
    assert answer.value["version"] == "1.2.3"
    assert world.broker.counts["generate"] == 1


# ---- requests ----


def test_a_generate_without_a_verdict_is_said_again_byte_for_byte():
    world = World(n_frames=2, script=[0, 1], silent=True).open()
    got, _ = world.send(logprobs=2)
    world.run(2.5)
    world.broker.silent = False
    world.until(lambda: got.end is not None)
    got.check_whole(2)
    assert world.broker.counts["generate"] >= 2
    assert len({repr(each) for each in world.broker.generates}) == 1


def test_a_long_generate_without_a_verdict_is_said_again_ever_later():
    world = World(n_frames=2, script=[0, 1]).open()
    world.broker.on_generate_part = lambda _fields: None  # but it answers pings
    got, _ = world.send("x" * 8000)
    parts = len(world.session.out)
    world.run(16)  # of seconds; a short one would be sent 16 times
    assert parts == 3
    assert 3 * parts <= world.broker.counts["generate_part"] <= 5 * parts
    del world.broker.on_generate_part
    world.until(lambda: got.end is not None)
    got.check_whole(2)


def test_a_generate_is_not_piled_up_before_a_broker_that_hangs():
    world = World(n_frames=2, dead=False).open()
    world.broker.dead = True
    world.send()
    world.run(20)
    assert world.broker.counts["generate"] == 1


def test_a_refusal_is_the_end_of_its_request():
    world = World(refusal="overloaded").open()
    got, _ = world.generate()
    assert (got.end.reason, got.end.error, got.end.retry_after_ms) == ("error", "overloaded", 70)
    assert got.end.text == "\ufffd[31mfull\ufffd"  # what a broker says cannot steer a terminal


def test_a_cancel_is_said_until_it_is_acknowledged_and_no_longer():
    world = World(n_frames=4, script=[0], cancels_lost=2, no_replays=True).open()
    got, request = world.send()
    world.run(0.1)
    world.session.cancel(request, world.now)
    world.run(5)
    assert world.broker.counts["cancel"] == 3
    assert got.end is None


def test_a_cancel_that_comes_too_late_changes_nothing():
    world = World(n_frames=4, script=[0, 1, 2], cancels_unknown=True, no_replays=True).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    world.session.cancel(request, world.now)
    world.run(0.1)
    assert got.end is None
    world.broker.no_replays = False
    world.until(lambda: got.end is not None)
    got.check_whole(4)


def test_a_cancel_that_comes_too_late_is_no_answer_to_a_replay():
    world = World(n_frames=6, script=[0, 2], cancels_unknown=True, no_replays=True).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    world.session.cancel(request, world.now)
    world.run(0.1)
    assert got.end is None
    world.broker.no_replays = False
    world.until(lambda: got.end is not None)
    got.check_whole(6)


def test_an_error_of_a_cancel_says_nothing_of_the_generate():
    world = World(n_frames=4, script=[0, 1, 2, 3], silent=True).open()
    got, request = world.send(logprobs=2)
    world.session.cancel(request, world.now)
    world.broker.reply("error", id=request, error="unknown_request", text="unknown", of="cancel")
    world.run(0.1)
    assert got.end is None
    world.broker.silent = False
    world.until(lambda: got.end is not None)  # the cancel came before its request, and is said again
    assert world.broker.counts["cancel"] == 2
    got.check_whole(4)


def test_an_error_of_a_replay_from_before_a_restart_ends_nothing():
    world = World(n_frames=6, script=[0, 1], no_replays=True).open()
    got, request = world.send(logprobs=2)
    world.run(0.1)
    world.broker.restart()
    world.broker.silent = True
    world.run(3)
    assert world.session.requests[request].state == "attaching"
    world.broker.reply("error", id=request, error="unknown_request", text="unknown", of="replay")
    world.run(0.1)
    assert got.end is None
    world.broker.silent = world.broker.no_replays = False
    world.until(lambda: got.end is not None)
    got.check_whole(6)


def test_only_an_error_of_the_hello_refuses_the_session():
    world = World()
    world.broker.reply("error", error="bad_request", text="what was that?", of="join")
    world.open()
    world = World()
    world.broker.reply("error", error="bad_request", text="what was that?", of="hello")
    world.run(0.1)
    assert isinstance(world.session.broken, quern.BadRequest)


def test_a_cancel_that_a_restart_swallowed_is_said_again():
    world = World(n_frames=9, script=[0, 1], cancels_lost=1, no_replays=True).open()
    _, request = world.send()
    world.run(0.1)
    world.session.cancel(request, world.now)
    world.run(0.1)
    world.broker.restart()
    world.run(3)
    assert world.broker.counts["cancel"] == 2


def test_an_attached_request_comes_from_its_beginning():
    broker = Broker(n_frames=5, script=[0])
    world = World(broker).open()
    _, request = world.send(keep_s=30, logprobs=2)
    world.run(0.1)
    assert (broker.generates[0]["on_disconnect"], broker.generates[0]["keep_s"]) == ("keep", 30)
    owner = world.session.id
    other = World(broker).open()
    got = type(other.send()[0])()
    other.session.attach(request, owner, got, other.now)
    other.until(lambda: got.end is not None)
    got.check_whole(5)


def test_an_attach_without_an_answer_is_said_again_and_one_that_is_refused_ends():
    world = World(n_frames=2, silent=True).open()
    got = type(world.send()[0])()
    world.session.attach(bytes([99]) * 16, bytes(15) + b"\1", got, world.now)
    world.run(2.5)
    assert world.broker.counts["attach"] >= 2
    world.broker.silent = False
    world.until(lambda: got.end is not None)
    assert got.end.error == "unknown_request"


# ---- questions ----


def test_questions_are_answered_and_asked_again_when_an_answer_is_lost():
    world = World(status_lost=2).open()
    answer, tokens = ask(world), ask(world, "tokenize", text="Hi")
    world.run(4)
    assert answer.value["workers"][0]["state"] == "failed"
    assert tokens.value["ids"] == [4, 5, 6]
    assert world.broker.counts["status"] == 3


def test_a_question_that_is_refused_says_why():
    world = World().open()
    answer = ask(world, "tokenize", text="Hi", model="none")
    world.run(0.1)
    assert isinstance(answer.value, quern.NoWorker)
    assert str(answer.value) == "none is ready"


def test_a_question_that_nobody_answers_is_given_up():
    world = World(silent=True).open()
    answer = ask(world, timeout=3.0)
    world.run(2.9)
    assert answer.value is None
    world.run(0.3)
    assert isinstance(answer.value, quern.NoAnswer)
    assert isinstance(answer.value, TimeoutError)


def test_a_question_that_cannot_be_asked_is_refused_at_once():
    world = World().open()
    assert isinstance(ask(world, "tokenize", text=5).value, quern.BadRequest)
    assert isinstance(ask(world, "tokenize", text="x" * 5000).value, quern.TooLong)
    assert world.broker.counts["tokenize"] == 0


# ---- leaving ----


def test_closing_says_goodbye_and_ends_everything():
    world = World(n_frames=4, script=[0]).open()
    got, _ = world.send()
    answer = ask(world, "tokenize", text="Hi")
    world.session.close()
    world.session.close()
    world.step()
    assert got.end.error == "closed"
    assert isinstance(answer.value, quern.Closed)
    assert world.broker.counts["bye"] == 1
