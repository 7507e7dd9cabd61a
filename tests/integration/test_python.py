# SPDX-License-Identifier: MIT
"""The Python client and a real pool: directly, and through a proxy that loses most of the stream.

The pool has the null device: its ids come fast, and the same for the same request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import msgpack
import pytest
import zmq

import quern

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["QUERN_BUILD"])
MODEL = TOP / "demo/quern-demo-Q8_0.gguf"
HELLO = [{"role": "user", "content": "Hello"}]
SCALE = float(os.environ.get("QUERN_TEST_SCALE", "1"))  # below 1 where a sanitizer makes everything slow
TOKENS = int(100_000 * SCALE)  # of a long request: a fraction of a second
WAIT = 60.0  # seconds until something that must happen counts as missing


def until(condition, what):
    end = time.monotonic() + WAIT
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {WAIT} s"
        time.sleep(0.02)
    return found


class Pool:
    def __init__(self, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-py-"))
        self.rundir = self.folder / "quern"  # where a client looks that is told XDG_RUNTIME_DIR
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            command = [BUILD / "quern", "serve", MODEL, "--device", "null", "--ctx", "1000000", "--rundir", self.rundir]
            self.process = subprocess.Popen([*command, *arguments], stdout=log, stderr=log, preexec_fn=os.setpgrp)
        until(lambda: self.said("ready:"), "the pool is ready")

    def said(self, text):
        said = self.log.read_text(errors="replace")
        assert self.process.poll() is None, said
        return text in said

    def child(self, name):
        """The pid of a child of that name, or None."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                called, rest = stat.read_text().split(" (", 1)[1].rsplit(") ", 1)
                if called == name and int(rest.split()[1]) == self.process.pid:
                    return int(stat.parent.name)
        return None

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(WAIT) == 0, self.log.read_text(errors="replace")
        finally:
            self.process.kill()
            shutil.rmtree(self.folder, ignore_errors=True)


class Lossy:
    """Stands before a pool as a pool. Of the frames on the stream one in four comes through."""

    def __init__(self, rundir, folder):
        self.folder = folder
        folder.mkdir(mode=0o700)
        self.context = zmq.Context()
        self.router, self.xpub = self.context.socket(zmq.ROUTER), self.context.socket(zmq.XPUB)
        self.xsub = self.context.socket(zmq.XSUB)
        self.router.bind(f"ipc://{folder}/frontend")
        self.xpub.bind(f"ipc://{folder}/stream")
        self.xsub.connect(f"ipc://{rundir}/stream")
        self.rundir = rundir
        self.dealers = {}
        self.frames = self.lost = 0
        self.stopping = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping:
            sockets = [self.router, self.xpub, self.xsub, *self.dealers.values()]
            for each in zmq.select(sockets, [], [], 0.05)[0]:
                self.pass_on(each, each.recv_multipart())

    def pass_on(self, came_from, parts):
        if came_from is self.router:
            peer, data = parts
            if peer not in self.dealers:
                self.dealers[peer] = self.context.socket(zmq.DEALER)
                self.dealers[peer].connect(f"ipc://{self.rundir}/frontend")
            self.dealers[peer].send(data)
        elif came_from is self.xpub:
            self.xsub.send_multipart(parts)
        elif came_from is self.xsub:
            self.frames += len(parts[0]) == 32
            if len(parts[0]) == 16 or self.frames % 4 == 0:
                self.xpub.send_multipart(parts)
            else:
                self.lost += 1
        else:
            message = msgpack.unpackb(parts[0])
            if message["k"] == "hello_ok":
                message["stream"] = [f"ipc://{self.folder}/stream"]
                parts = [msgpack.packb(message)]
            peer = next(peer for peer, dealer in self.dealers.items() if dealer is came_from)
            self.router.send_multipart([peer, *parts])

    def end(self):
        self.stopping = True
        self.thread.join()
        self.context.destroy(linger=0)


@pytest.fixture(scope="module")
def pool():
    served = Pool()
    yield served
    served.end()


@pytest.fixture
def client(pool):
    with quern.Client(pool.rundir, timeout=WAIT) as client:
        yield client


def two_free_ports():
    """The first of two, below those that the system gives out by itself."""
    for port in random.sample(range(20000, 30000, 2), 100):
        with contextlib.suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port
    raise AssertionError("no free ports")


def test_a_pool_on_tcp_lets_in_those_whose_keys_it_has(tmp_path):
    for *who, folder in (("",), ("--client", "alice", "clients"), ("--client", "bob", "others")):
        command = [BUILD / "quern", "keys", *who, tmp_path / folder]
        subprocess.run(command, check=True, capture_output=True, timeout=WAIT)
    address = f"127.0.0.1:{two_free_ports()}"
    secret, clients = tmp_path / "quern.cert_secret", tmp_path / "clients"
    pool = Pool("--tcp", address, "--curve-key", secret, "--client-keys", clients)
    try:
        endpoint = f"tcp://{address}"
        server = tmp_path / "quern.cert"
        alice, bob = tmp_path / "clients" / "alice.cert", tmp_path / "others" / "bob.cert"
        with quern.Client(endpoint, server_key=server, client_key=alice, timeout=WAIT) as client:
            assert client.chat(HELLO, max_tokens=5).result().end.output_tokens == 5
            with pytest.raises(quern.NotAllowed, match="does not know this client's key"):
                quern.Client(endpoint, server_key=server, client_key=bob, timeout=WAIT)
            alice.unlink()
            end = time.monotonic() + WAIT
            with pytest.raises(quern.NotAllowed):  # whose key is taken away loses its session
                while time.monotonic() < end:
                    client.generate("Hi", max_tokens=5).text()
                    time.sleep(0.05)
    finally:
        pool.end()


def long_request(client, **more):
    return client.generate("Once", max_tokens=TOKENS, seed=5, temperature=1, **more)


@pytest.fixture(scope="module")
def expected(pool):
    """What a long request brings when nothing goes wrong."""
    with quern.Client(pool.rundir, timeout=WAIT) as client:
        result = long_request(client).result()
    assert len(result.ids) == TOKENS
    return result


def test_an_answer_streams_and_says_how_it_ended(client):
    pieces = list(client.chat(HELLO, max_tokens=20, logprobs=2))
    end = pieces[-1].end
    assert (end.reason, end.output_tokens) == ("length", 20)
    assert end.prompt_tokens > 5
    assert sum(len(piece.ids) for piece in pieces) == 20
    assert all(len(row) == 2 for piece in pieces for row in piece.logprobs)
    again = client.chat(HELLO, max_tokens=20, seed=end.seed).result()
    assert again.ids == tuple(i for piece in pieces for i in piece.ids)
    assert again.end.cached_tokens <= again.end.prompt_tokens


def test_tokens_come_with_their_bytes(client):
    result = client.chat(HELLO, max_tokens=20, logprobs=3, pieces=True).result()
    own = b"".join(row[0].piece for row in result.logprobs)
    assert own.decode(errors="replace").startswith(result.text.rstrip("\ufffd"))
    assert all(entry.piece for row in result.logprobs for entry in row)


def test_what_the_pool_says_of_itself(client):
    assert client.models[0].chat
    status = client.status(WAIT)
    assert [worker.state for worker in status.workers] == ["ready"]
    assert status.sessions >= 1
    ids = client.tokenize("Hello", timeout=WAIT)
    assert ids and client.generate(ids, max_tokens=1).result().end.prompt_tokens == len(ids)
    assert client.detokenize(ids, timeout=WAIT) == "Hello"
    end = 1023  # of the demo model, a control token
    assert client.detokenize([*ids, end], timeout=WAIT) == "Hello"
    assert client.detokenize([*ids, end], special=True, timeout=WAIT) == "Hello<|im_end|>"


def test_texts_have_embeddings(client):
    hello, again, other = (client.embed(text) for text in ("Hello", "Hello", "A cat sat on the mat."))
    assert hello.vector == again.vector
    assert len(hello.vector) == client.models[0].embedding == client.status(WAIT).workers[0].embedding
    assert sum(each * each for each in hello.vector) == pytest.approx(1, abs=1e-5)
    assert sum(a * b for a, b in zip(hello.vector, other.vector, strict=True)) < 0.99
    assert client.embed(client.tokenize("Hello", timeout=WAIT)).vector == hello.vector
    assert hello.end.output_tokens == 0 < hello.end.prompt_tokens


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"model": "none"}, quern.NoWorker), ({"require": ["magic"]}, quern.Unsupported),
     ({"max_tokens": 2**31 - 1}, quern.TooLong), ({"stop_ids": [2**31 - 1]}, quern.BadRequest)],
)  # fmt: skip
def test_what_the_pool_refuses_is_raised_by_its_name(client, wrong, error):
    with pytest.raises(error) as refusal:
        client.generate("Hi", **wrong).text()
    assert str(refusal.value)


def test_a_deadline_and_a_cancel_end_a_request(client):
    assert client.generate("Hi", max_tokens=900_000, deadline_ms=50).result().end.reason == "deadline"
    stream = client.generate("Hi", max_tokens=900_000)
    next(stream)
    stream.cancel()
    assert stream.result().end.reason == "cancelled"
    until(lambda: client.status(WAIT).running == 0, "nothing runs")


def test_a_stream_that_is_left_frees_its_worker(client):
    for _ in client.generate("Hi", max_tokens=900_000):
        break
    until(lambda: client.status(WAIT).running == 0, "nothing runs")


def test_a_request_is_taken_over_from_its_first_token(pool, client, expected):
    with quern.Client(pool.rundir, timeout=WAIT) as first:
        stream = long_request(first, keep_s=60)
        next(stream)
        session, request = first.session, stream.id
    assert client.attach(request, session).result().ids == expected.ids
    with pytest.raises(quern.UnknownRequest):
        client.attach(bytes(16), session).text()


def test_a_request_goes_on_in_another_session_as_if_nothing_had_happened(pool, client, expected):
    ids, text, digest = [], "", None
    with quern.Client(pool.rundir, timeout=WAIT) as first, long_request(first) as stream:
        for piece in stream:
            ids += piece.ids
            text += piece.text
            digest = digest or piece.prompt_digest
            if len(ids) > 1000:
                break
    rest = long_request(client, output=ids, off=len(text.encode()), prompt_digest=digest).result()
    assert [*ids, *rest.ids] == list(expected.ids)
    assert text + rest.text == expected.text
    assert rest.end.output_tokens == expected.end.output_tokens and rest.end.lost == 0
    with pytest.raises(quern.Error, match="prompt_digest: the prompt of") as refusal:
        long_request(client, output=ids, prompt_digest=bytes(16)).text()
    assert refusal.value.name == "conflict"


def test_a_stream_that_loses_most_frames_brings_every_token(pool, expected):
    proxy = Lossy(pool.rundir, pool.folder / "lossy")
    try:
        with quern.Client(proxy.folder, timeout=WAIT) as client:
            streams = [long_request(client) for _ in range(3)]
            for stream in streams:
                result = stream.result()
                assert result.ids == expected.ids
                assert result.text == expected.text
        assert proxy.lost > 3
    finally:
        proxy.end()


def test_many_requests_in_an_event_loop(pool, expected):
    async def main():
        async with quern.AsyncClient(pool.rundir, timeout=WAIT) as client:
            results = await asyncio.gather(*(long_request(client).result() for _ in range(3)))
            assert [result.ids for result in results] == [expected.ids] * 3
            texts = await asyncio.gather(*(client.chat(HELLO, max_tokens=9, seed=1).text() for _ in range(50)))
            assert len(set(texts)) == 1

    asyncio.run(main())


@pytest.mark.parametrize("program", ["quern-broker", "quern-worker"])
def test_a_request_survives_the_death_of_a_process(pool, client, expected, program):
    worker, victim = pool.child("quern-worker"), pool.child(program)
    before = client.status(WAIT)
    for _ in range(100):
        stream = long_request(client)
        gathered = list(next(stream).ids)
        os.kill(worker, signal.SIGSTOP)  # in the middle of it, unless it was faster
        if client.status(WAIT).running == 1:
            break
        os.kill(worker, signal.SIGCONT)
        stream.result()
    else:
        raise AssertionError("every request ended before its worker could be stopped")
    os.kill(victim, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGCONT)
    gathered += stream.result().ids
    assert tuple(gathered) == expected.ids
    after = client.status(WAIT)
    assert after.boot > before.boot if program == "quern-broker" else after.moved > before.moved
    assert client.chat(HELLO, max_tokens=5).result().end.output_tokens == 5


def test_a_client_outlives_a_broker_that_stands_still(pool):
    broker = pool.child("quern-broker")
    with quern.Client(pool.rundir, timeout=WAIT, patience=2) as client:
        stream = client.generate("Hi", max_tokens=900_000)
        next(stream)
        os.kill(broker, signal.SIGSTOP)
        try:
            with pytest.raises(quern.WorkerLost, match="has not answered for 2"):
                stream.result()
            with pytest.raises(quern.Unreachable):
                client.tokenize("Hi")
        finally:
            os.kill(broker, signal.SIGCONT)
        until(lambda: asked(client), "the client finds its pool again")
        until(lambda: client.status(WAIT).running == 0, "nothing runs that nobody waits for")
        assert client.chat(HELLO, max_tokens=5).result().end.output_tokens == 5


def asked(client):
    try:
        return client.tokenize("Hi", timeout=WAIT)
    except quern.Unreachable:  # a busy machine: the broker has yet to wake up
        return None


# ---- what the documents show ----


def run(pool, *arguments):
    """What a program in Python prints that looks for the pool itself."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(pool.folder)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, timeout=WAIT, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_do_what_they_say(pool):
    examples = TOP / "examples"
    assert len(run(pool, examples / "hello.py", "Once")) > 20
    assert run(pool, examples / "several.py", "Who?", "What?").count("\n    ") == 2
    ticket = run(pool, examples / "take_over.py").strip()
    assert len(run(pool, examples / "take_over.py", "--take", ticket)) > 20


@pytest.mark.parametrize("document", ["README.md", "client/python/README.md"])
def test_what_a_readme_shows_runs(pool, document):
    program = (TOP / document).read_text(encoding="utf-8").split("```python\n", 1)[1].split("```", 1)[0]
    assert "import quern" in program
    assert len(run(pool, "-c", program)) > 20


def test_an_example_says_why_it_failed(tmp_path):
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, TOP / "examples/hello.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "unreachable: no pool is running in" in done.stderr


def test_a_thought_has_a_budget(tmp_path):
    turns = "{% for m in messages %}<{{ m.role }}>{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' if m.reasoning_content }}"
    (tmp_path / "template").write_text(turns + "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant><think>\n{% endif %}")
    thinks = Pool("--chat-template", tmp_path / "template")
    try:
        with quern.Client(thinks.rundir, timeout=WAIT) as client:
            free = client.chat(HELLO, max_tokens=40, seed=1).result()
            assert "</think>" not in free.text
            for budget in (0, 1, 7):
                answer = client.chat(HELLO, max_tokens=40, seed=1, thinking_budget=budget).result()
                assert answer.ids[:budget] == free.ids[:budget] and answer.text.count("\n</think>\n\n") == 1
                again = client.generate(f"<think> {budget}", max_tokens=40, seed=1, thinking_budget=budget).result()
                assert again.text.count("\n</think>\n\n") == 1
            with pytest.raises(quern.BadRequest, match="thinking_budget: -1 is out of range"):
                client.chat(HELLO, thinking_budget=-1)
    finally:
        thinks.end()
