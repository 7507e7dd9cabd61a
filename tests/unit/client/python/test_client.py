# SPDX-License-Identifier: MIT
"""Both faces of the client, over real sockets, before a broker in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import threading
import time

import pytest
import zmq
from zmq.auth.thread import ThreadAuthenticator

import quern
from fake_broker import END, Broker, text_of

WAIT = 30.0  # seconds until something that must happen counts as missing


def until(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "not within time"
        time.sleep(0.005)


class Served:
    """The broker of fake_broker.py behind sockets. `lose` says of each frame whether it vanishes."""

    def __init__(self, broker, folder, lose=None, tcp=False, server=None, allowed=None):
        self.broker, self.lose = broker, lose or (lambda n: False)
        self.context = zmq.Context()
        self.router, self.stream = self.context.socket(zmq.ROUTER), self.context.socket(zmq.XPUB)
        self.authenticator = None
        if allowed is not None:
            self.authenticator = ThreadAuthenticator(self.context)
            self.authenticator.start()
            self.authenticator.configure_curve_callback("*", Allowed(allowed))
        for each in (self.router, self.stream):
            each.linger = 0
            if server:
                each.curve_server = True
                each.curve_publickey, each.curve_secretkey = server
        if tcp:
            self.endpoint = f"tcp://127.0.0.1:{self.router.bind_to_random_port('tcp://127.0.0.1')}"
            broker.stream = [f"tcp://127.0.0.1:{self.stream.bind_to_random_port('tcp://127.0.0.1')}"]
        else:
            folder.chmod(0o700)
            self.endpoint = str(folder)
            self.router.bind(f"ipc://{folder}/frontend")
            self.stream.bind(f"ipc://{folder}/stream")
            broker.stream = [f"ipc://{folder}/stream"]
        self.frames = 0
        self.stopping = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        poller = zmq.Poller()
        poller.register(self.router, zmq.POLLIN)
        poller.register(self.stream, zmq.POLLIN)
        while not self.stopping:
            poller.poll(10)
            with contextlib.suppress(zmq.Again):
                while True:
                    self.stream.recv(zmq.NOBLOCK)  # subscriptions: an XPUB needs them read
            with contextlib.suppress(zmq.Again):
                while True:
                    peer, data = self.router.recv_multipart(zmq.NOBLOCK)
                    self.broker.take(data)
                    self.answer(peer)

    def answer(self, peer):
        while self.broker.replies:
            self.router.send_multipart([peer, self.broker.replies.popleft()])
        while self.broker.published:
            parts = self.broker.published.popleft()
            self.frames += 1
            if len(parts[0]) == 16 or not self.lose(self.frames):
                self.stream.send_multipart(parts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()
        if self.authenticator:
            self.authenticator.stop()
        self.context.destroy(linger=0)


class Allowed:
    def __init__(self, keys):
        self.keys = keys

    def callback(self, _domain, key):
        return key in self.keys


def whole(n_frames):
    return "".join(text_of(i) for i in range(n_frames))


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("q")  # a socket's path is short


def frames(n):
    return Broker(n_frames=n, script=[*range(n), END])


def test_a_request_streams(folder):
    with Served(frames(5), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        assert client.is_open
        assert [model.name for model in client.models] == ["fake"]
        pieces = list(client.generate("Hi", logprobs=2))
        assert "".join(piece.text for piece in pieces) == whole(5)
        assert [each for piece in pieces for each in piece.ids] == list(range(10))
        assert [piece.index for piece in pieces] == [0, 2, 4, 6, 8]
        assert pieces[0].logprobs[0] == ((0, -0.5, b""), (7, -1.0, b""))
        end = pieces[-1].end
        assert (end.reason, end.prompt_tokens, end.output_tokens, end.decode_ms) == ("length", 3, 10, 3.0)
        result = client.chat([{"role": "user", "content": "Hi"}]).result()
        assert (result.text, result.ids, result.end.reason) == (whole(5), tuple(range(10)), "length")
        (message,) = served.broker.generates[-1]["prompt"]
        assert (message["role"], message["content"]) == ("user", "Hi")
        assert client.tokenize("Hi") == [4, 5, 6]
        status = client.status(WAIT)
        assert (status.version, status.workers[0].reason) == ("1.2.3", "no\ufffd such file")
        assert "open" in repr(client)
    assert not client.is_open


def test_an_embedding_comes_as_a_vector(folder):
    with Served(Broker(), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        embedding = client.embed("Hi", model="fake", priority=3)
        assert embedding.vector == pytest.approx((0.6, -0.8))
        assert (embedding.end.reason, embedding.end.prompt_tokens, embedding.end.output_tokens) == ("stop", 3, 0)
        (asked,) = served.broker.generates
        assert (asked["prompt"], asked["embed"], asked["require"], asked["priority"]) == ("Hi", True, ["embed"], 3)
        assert client.embed([5, 6]).vector == embedding.vector
        assert served.broker.generates[-1]["prompt"] == [5, 6]
        with pytest.raises(quern.BadRequest, match="embed"):
            client.generate("Hi", embed=True)
        with pytest.raises(quern.BadRequest, match="not messages"):
            client.embed([{"role": "user", "content": "Hi"}])
        served.broker.refusal = "unsupported"
        with pytest.raises(quern.Unsupported):
            client.embed("Hi")


def test_a_pair_comes_as_scores(folder):
    with Served(Broker(), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        ranking = client.rank("Why?", "So.", model="fake", priority=3)
        assert ranking.scores == pytest.approx((0.6, -0.8))
        assert ranking.score == ranking.scores[0]
        (asked,) = served.broker.generates
        assert (asked["prompt"], asked["document"], asked["embed"], asked["require"]) == ("Why?", "So.", True, ["document"])
        assert (asked["model"], asked["priority"]) == ("fake", 3)
        with pytest.raises(quern.BadRequest, match="document: is empty"):
            client.rank("Why?", "")
        with pytest.raises(quern.BadRequest, match="document: expected with a text and embed"):
            client.rank([1, 2], "So.")
        with pytest.raises(quern.BadRequest, match="document"):
            client.generate("Why?", document="So.")


def test_an_embedding_whose_frame_was_dropped_is_asked_for_again(folder):
    with Served(Broker(), folder, lose=lambda _: True) as served, quern.Client(folder, timeout=WAIT) as client:
        assert client.embed("Hi").vector == pytest.approx((0.6, -0.8))
        assert served.broker.counts["replay"] == 1
        served.broker.loses_embeddings = True
        with pytest.raises(quern.WorkerLost):
            client.embed("Hi")


def test_a_stream_that_loses_most_frames_still_brings_every_token(folder):
    with Served(frames(60), folder, lose=lambda n: n % 4 != 0) as served, quern.Client(folder, timeout=WAIT) as client:
        served.broker.page_frames = 7
        streams = [client.generate("Hi") for _ in range(5)]
        assert [stream.text() for stream in streams] == [whole(60)] * 5
        assert served.broker.counts["replay"] > 5


def test_a_slow_reader_loses_nothing_and_stays_in_the_pool(folder):
    with Served(frames(50), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        stream = client.generate("Hi")
        first = next(stream)
        until(lambda: served.broker.counts["ping"] >= 3)  # and nobody reads meanwhile
        assert first.text + stream.text() == whole(50)


def test_threads_share_a_client(folder):
    with Served(frames(20), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        texts = []
        threads = [threading.Thread(target=lambda: texts.append(client.generate("Hi").text())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        assert texts == [whole(20)] * 8
        assert served.broker.counts["hello"] == 1


def test_a_refusal_is_raised_where_the_stream_is_read(folder):
    with Served(Broker(refusal="overloaded"), folder), quern.Client(folder, timeout=WAIT) as client:
        stream = client.generate("Hi")
        with pytest.raises(quern.Overloaded) as refusal:
            next(stream)
        assert refusal.value.retry_after == pytest.approx(0.07)
        with pytest.raises(quern.Overloaded):
            next(stream)
        with pytest.raises(quern.BadRequest, match="top_p"):
            client.generate("Hi", top_p=2)
        with pytest.raises(quern.TooLong):
            client.generate("Hi", logprobs=3)
        with pytest.raises(quern.NoWorker):
            client.tokenize("Hi", model="none")


def test_a_stream_that_is_left_cancels_its_request(folder):
    with Served(Broker(n_frames=9, script=[0, 1]), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        served.broker.no_replays = True
        for _ in client.generate("Hi"):
            break
        gc.collect()
        until(lambda: served.broker.counts["cancel"] == 1)
        with client.generate("Hi") as stream:
            next(stream)
        until(lambda: served.broker.counts["cancel"] == 2)
        stream = client.generate("Hi")
        stream.cancel()
        until(lambda: served.broker.counts["cancel"] == 3)
        with client.generate("Hi", keep_s=60) as kept:  # is meant to outlive its reader
            next(kept)
        client.status(WAIT)
        assert served.broker.counts["cancel"] == 3


def test_closing_ends_what_is_still_read(folder):
    with Served(Broker(n_frames=9, script=[0]), folder) as served:
        client = quern.Client(folder, timeout=WAIT)
        stream = client.generate("Hi")
        next(stream)
        threading.Timer(0.1, client.close).start()
        with pytest.raises(quern.Closed):
            stream.text()
        client.close()
        for call in (client.status, lambda: client.generate("Hi"), lambda: client.attach(bytes(16))):
            with pytest.raises(quern.Closed):
                call()
        until(lambda: served.broker.counts["bye"] == 1)


def test_a_client_that_is_forgotten_says_goodbye(folder):
    with Served(frames(3), folder) as served:
        before = set(threading.enumerate())  # some of which may be about to end
        client = quern.Client(folder, timeout=WAIT)
        (its_own,) = set(threading.enumerate()) - before
        del client
        gc.collect()
        until(lambda: served.broker.counts["bye"] == 1)
        until(lambda: not its_own.is_alive())


def in_a_fork(client, answers):
    try:
        client.status()
    except quern.Closed as closed:
        answers.put(str(closed))
    client.close()


def test_a_client_is_of_no_use_after_a_fork_and_says_so(folder):
    with Served(frames(3), folder) as served, quern.Client(folder, timeout=WAIT) as client:
        fork = multiprocessing.get_context("fork")
        answers = fork.Queue()
        child = fork.Process(target=in_a_fork, args=(client, answers))
        child.start()
        assert f"belongs to the process that made it ({os.getpid()})" in answers.get(timeout=WAIT)
        child.join(WAIT)
        assert child.exitcode == 0
        assert client.generate("Hi").text() == whole(3)
        assert served.broker.counts["bye"] == 0


def test_a_defect_of_ours_ends_everything_with_a_reason(folder, monkeypatch):
    with Served(Broker(n_frames=9, script=[0]), folder), quern.Client(folder, timeout=WAIT) as client:
        stream = client.generate("Hi")
        next(stream)

        def fall(_session, _now):
            raise MemoryError("none left")

        monkeypatch.setattr("quern._session.Session.tick", fall)
        with pytest.raises(quern.InternalError, match="MemoryError: none left"):
            stream.text()
        with pytest.raises((quern.Closed, quern.InternalError)):  # whether the thread has left yet
            client.status()


def test_a_broker_that_does_not_answer_is_given_up(folder):
    with Served(Broker(dead=True), folder), pytest.raises(quern.Unreachable, match="no broker responds at"):
        quern.Client(folder, timeout=0.3)


def test_a_client_that_lost_patience_works_when_the_pool_is_back(folder):
    with Served(frames(5), folder) as served, quern.Client(folder, timeout=WAIT, patience=1.5) as client:
        for _ in range(2):  # and as often as it happens
            assert client.generate("Hi").text() == whole(5)
            served.broker.dead = True
            with pytest.raises(quern.Error) as lost:
                client.generate("Hi").text()
            assert lost.type in (quern.WorkerLost, quern.Unreachable)
            assert "has not answered for" in str(lost.value)
            assert not client.is_open
            with pytest.raises(quern.Unreachable):
                client.tokenize("Hi")  # one error for each that is asked meanwhile
            served.broker.dead = False
            assert client.tokenize("Hi") == [4, 5, 6]
        hellos = served.broker.counts["hello"]
        assert client.generate("Hi").text() == whole(5)
        assert served.broker.counts["hello"] == hellos  # none that waited in a socket


def test_a_client_that_lost_patience_works_again_in_an_event_loop_too(folder):
    async def main(served):
        async with quern.AsyncClient(folder, timeout=WAIT, patience=1.5) as client:
            assert await client.generate("Hi").text() == whole(5)
            served.broker.dead = True
            results = await asyncio.gather(
                client.generate("Hi").text(), client.tokenize("Hi"), return_exceptions=True
            )
            assert isinstance(results[0], quern.WorkerLost | quern.Unreachable)
            assert isinstance(results[1], quern.Unreachable)
            served.broker.dead = False
            assert await client.tokenize("Hi") == [4, 5, 6]
            assert await client.generate("Hi").text() == whole(5)

    with Served(frames(5), folder) as served:
        asyncio.run(main(served))


def test_a_client_that_was_there_before_its_pool_finds_it(folder):
    async def main():
        client = quern.AsyncClient(folder, timeout=WAIT, patience=0.5)
        with pytest.raises(quern.Unreachable):
            await client.tokenize("Hi")
        with Served(frames(5), folder):
            while True:
                with contextlib.suppress(quern.Unreachable):
                    assert await client.tokenize("Hi", timeout=WAIT) == [4, 5, 6]
                    break
            assert await client.generate("Hi").text() == whole(5)
            await client.close()

    folder.chmod(0o700)
    (folder / "frontend").touch()
    asyncio.run(asyncio.wait_for(main(), WAIT))


def test_a_broker_whose_stream_does_not_answer_is_told_apart(folder):
    with Served(Broker(welcomes_lost=10**6), folder):
        client = quern.AsyncClient(folder)
        until(lambda: client._driver.session.state == "join")
        assert "its stream" in str(client._driver.no_answer(1))
        client._stop()


def test_a_broker_of_another_version_is_named(folder):
    with Served(Broker(versions=(7, 8)), folder), pytest.raises(quern.Unsupported, match="versions 7 to 8"):
        quern.Client(folder, timeout=WAIT)


# ---- keys ----


def keys_in(folder, name):
    """A certificate of a new pair; its public key."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    path = folder / name
    path.write_text(f'curve\n    public-key = "{public}"\n    secret-key = "{secret}"\n')
    path.chmod(0o600)
    return path, public.encode(), secret.encode()


def test_a_pool_that_encrypts_is_reached_with_its_key(folder):
    path, public, secret = keys_in(folder, "server")
    with Served(frames(4), folder, tcp=True, server=(public, secret)) as served:
        with quern.Client(served.endpoint, server_key=path, timeout=WAIT) as client:
            assert client.generate("Hi").text() == whole(4)
        with pytest.raises(quern.Unreachable, match="may require a server key"):
            quern.Client(served.endpoint, timeout=0.5)
        with pytest.raises(quern.Unreachable, match="may belong to another pool"):
            quern.Client(served.endpoint, server_key=keys_in(folder, "other")[1].decode(), timeout=0.5)
        with pytest.raises(quern.BadRequest, match="requires the pool's server key"):
            quern.Client(served.endpoint, client_key=path)


def test_a_pool_lets_in_those_it_knows_and_the_others_are_told(folder):
    server, mine, other = keys_in(folder, "server"), keys_in(folder, "mine"), keys_in(folder, "other")
    with Served(frames(4), folder, tcp=True, server=server[1:], allowed=[mine[1]]) as served:
        with quern.Client(served.endpoint, server_key=server[0], client_key=mine[0], timeout=WAIT) as client:
            assert client.generate("Hi").text() == whole(4)
        with pytest.raises(quern.NotAllowed, match="does not know this client's key"):
            quern.Client(served.endpoint, server_key=server[0], client_key=other[0], timeout=WAIT)
        with pytest.raises(quern.NotAllowed):
            quern.Client(served.endpoint, server_key=server[0], timeout=WAIT)


def test_a_key_is_for_tcp(folder):
    with Served(frames(1), folder), pytest.raises(quern.BadRequest, match="takes no key"):
        quern.Client(folder, server_key=keys_in(folder, "server")[0])


# ---- asyncio ----


def test_requests_stream_in_an_event_loop(folder):
    async def main():
        async with quern.AsyncClient(folder, timeout=WAIT) as client:
            pieces = [piece async for piece in client.generate("Hi", logprobs=2)]
            assert "".join(piece.text for piece in pieces) == whole(40)
            assert pieces[-1].end.reason == "length"
            texts = await asyncio.gather(*(client.chat([{"role": "user", "content": "Hi"}]).text() for _ in range(8)))
            assert texts == [whole(40)] * 8
            assert await client.tokenize("Hi") == [4, 5, 6]
            embeddings = await asyncio.gather(*(client.embed("Hi") for _ in range(8)))
            assert all(each.vector == pytest.approx((0.6, -0.8)) for each in embeddings)
            assert (await client.status(WAIT)).version == "1.2.3"
            result = await client.generate("Hi").result()
            assert result.ids == tuple(range(80))
        assert not client.is_open
        with pytest.raises(quern.Closed):
            client.generate("Hi")

    with Served(frames(40), folder, lose=lambda n: n % 3 == 0):
        asyncio.run(main())


def test_a_loop_that_is_busy_loses_nothing(folder):
    async def main(served):
        async with quern.AsyncClient(folder, timeout=WAIT) as client:
            stream = client.generate("Hi")
            first = await stream.__anext__()
            until(lambda: served.broker.counts["ping"] >= 2)  # blocks the loop
            assert first.text + await stream.text() == whole(30)

    with Served(frames(30), folder) as served:
        asyncio.run(main(served))


def test_a_task_that_is_cancelled_cancels_its_request(folder):
    async def read(client):
        async with client.generate("Hi") as stream:
            async for _ in stream:
                pass

    async def main():
        async with quern.AsyncClient(folder, timeout=WAIT) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(read(client), 0.2)
            until(lambda: served.broker.counts["cancel"] == 1)

    with Served(Broker(n_frames=9, script=[0, 1]), folder) as served:
        asyncio.run(main())


def test_what_goes_wrong_is_raised_in_an_event_loop_too(folder):
    async def main():
        async with quern.AsyncClient(folder, timeout=WAIT) as client:
            with pytest.raises(quern.Overloaded):
                await client.generate("Hi").text()
            with pytest.raises(quern.NoWorker):
                await client.tokenize("Hi", model="none")
        served.broker.dead = True
        with pytest.raises(quern.Unreachable):
            async with quern.AsyncClient(folder, timeout=0.3):
                pass

    with Served(Broker(refusal="overloaded"), folder) as served:
        asyncio.run(main())


def test_a_loop_that_ends_before_its_client_is_no_harm(folder):
    async def main():
        client = quern.AsyncClient(folder, timeout=WAIT)
        await client.open()
        client.generate("Hi", keep_s=9)
        return client

    with Served(frames(30), folder) as served:
        client = asyncio.run(main())
        until(lambda: served.broker.counts["generate"] == 1)
        del client
        gc.collect()
        until(lambda: served.broker.counts["bye"] == 1)
