# SPDX-License-Identifier: MIT
"""Servers with an OpenAI-like HTTP interface, and the clients that ask them, the same ones for all."""

import http.client
import json
import random
import re
import statistics
import subprocess
import threading
import time

from .engine import TIMEOUT_S, Failure, Variant, last_words

START_S = 180  # until a server that does not answer counts as failed
CONTEXT = 512  # tokens of each slot: more than any request of the jobs needs
LEAST_ID, MOST_ID = 300, 100000  # of random prompts: behind the control and byte tokens of every vocabulary


class Server:
    """A server in a process of its own, with what it says in a file. Its port is known, or in what it says."""

    def __init__(self, name, log, *command, port=0, said_port=None):
        self.name, self.log, self.command = name, log, [str(word) for word in command]
        self.port, self.said_port, self.process = port, said_port, None

    def start(self):
        try:
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=subprocess.STDOUT, cwd=self.log.parent, start_new_session=True)
        except OSError as error:
            raise Failure(f"{self.command[0]}: {error.strerror}") from error
        end = time.monotonic() + START_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure(f"{self.name} does not serve: {last_words(self.log.read_text(errors='replace'))}")
            time.sleep(0.1)

    def answers(self):
        if self.port == 0:
            said = re.search(self.said_port, self.log.read_text(errors="replace"))
            self.port = int(said[1]) if said else 0
        try:
            return self.port != 0 and self.ask("Hello.", 1, 0, False)[0] > 0
        except (OSError, Failure, http.client.HTTPException):
            return False

    def ask(self, prompt, new, seed, streamed):
        """The tokens of one answer, and the seconds until its first: all of it, where it is not streamed."""
        body = {"prompt": prompt, "max_tokens": new, "seed": seed, "stream": streamed}
        # Ids are followed by the likeliest ones, a text by any.
        body.update({"temperature": 1} if isinstance(prompt, str) else {"temperature": 0, "top_k": 1})
        if streamed:
            body["stream_options"] = {"include_usage": True}
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise Failure(f"{self.name}: HTTP status {answer.status}: {answer.read(300).decode(errors='replace')}")
            if streamed:
                n_tokens, first = read_stream(answer)
                return n_tokens, first - begun
            return json.loads(answer.read())["usage"]["completion_tokens"], time.monotonic() - begun
        except (KeyError, TypeError, ValueError) as error:
            raise Failure(f"{self.name}: an answer without its usage") from error
        finally:
            connection.close()

    def end(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def read_stream(lines):
    """The tokens that the usage of a stream tells, and when the first text came. `lines` are of server-sent events."""
    n_tokens, first = None, None
    for line in lines:
        if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
            continue
        event = json.loads(line[len(b"data: "):])
        if first is None and any(choice.get("text") for choice in event.get("choices") or ()):
            first = time.monotonic()
        if event.get("usage"):
            n_tokens = event["usage"]["completion_tokens"]
    if n_tokens is None or first is None:
        raise ValueError("a stream without text or usage")
    return n_tokens, first


def prompt_of(job, number, client, request):
    """The same for every engine, and one that no engine has seen before."""
    if job.prompt == 0:
        return "What does the broker do?"
    ids = random.Random(f"{number} {client} {request}")
    return [ids.randrange(LEAST_ID, MOST_ID) for _ in range(job.prompt)]


def measure(server, job, number):
    """Tokens a second of all clients together, and the median of the times to the first token in ms."""
    n_tokens, firsts, failures = [], [], []
    lock, begun = threading.Lock(), time.monotonic()

    def client(index):
        try:
            for request in range(job.requests):
                seed = number * 10000 + index * 100 + request
                n, first = server.ask(prompt_of(job, number, index, request), job.new, seed, job.streamed)
                with lock:
                    n_tokens.append(n)
                    firsts.append(first)
        except (OSError, Failure, http.client.HTTPException) as error:
            with lock:
                failures.append(error)

    threads = [threading.Thread(target=client, args=(index,)) for index in range(job.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    if failures:
        raise Failure(f"{server.name}: {len(failures)} of {job.clients} clients failed: {failures[0]}")
    return {"rate": sum(n_tokens) / seconds, "first_ms": 1e3 * statistics.median(firsts)}


def served(label, job, server, clean_up):
    """A variant whose server starts with its first round and stays until the job ends."""
    def measure_once(number):
        if server.process is None:
            server.start()
            server.ask(prompt_of(job, "warm-up", 0, 0), job.new, 0, job.streamed)
        return measure(server, job, number)

    def close():
        server.end()
        clean_up()

    return Variant(label, measure_once, close)
