#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How well `requests=N` of a key holds over several gateways: BUILD_FOLDER MODEL [SECONDS].

24 clients with one key ask three gateways of one pool, with the null device, for streams that they leave after 0.2 to
0.5 s, and after a 429 once more within 50 ms. Printed: for how much of the time how many streams were in progress."""

import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT, CLIENTS, PORTS = 8, 24, (8001, 8003, 8005)
KEY = "sk-0123456789abcdef"
WARM_UP = 3  # seconds until the gateways have heard of each other


class InProgress:
    """The streams in progress, and how long there were how many."""

    def __init__(self):
        self.lock, self.count, self.since = threading.Lock(), 0, time.monotonic()
        self.seconds, self.refused = collections.Counter(), 0

    def changes(self, by):
        with self.lock:
            now = time.monotonic()
            self.seconds[self.count] += now - self.since
            self.count, self.since = self.count + by, now

    def forget(self):
        with self.lock:
            self.seconds.clear()
            self.refused, self.since = 0, time.monotonic()


def client(port, number, progress, end):
    rng = random.Random(number)
    body = json.dumps({"prompt": [300, 301], "max_tokens": 900_000, "stream": True}).encode()
    request = (f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
               f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    while not end.is_set():
        with socket.create_connection(("127.0.0.1", port), 60) as connection:
            connection.sendall(request)
            head = connection.recv(1000)
            if b" 200 " in head:
                progress.changes(+1)
                time.sleep(rng.uniform(0.2, 0.5))
        if b" 200 " in head:
            progress.changes(-1)
            continue
        assert b" 429 " in head, head
        with progress.lock:
            progress.refused += 1
        time.sleep(rng.uniform(0, 0.05))


def answers(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def main():
    build, model, seconds = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), float((sys.argv + [20])[3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("keys").write_text(f"ada {KEY} requests={LIMIT}\n")
        os.chmod("keys", 0o600)
        started = [subprocess.Popen([build / "quern-broker", model, "--device", "null", "--ctx", "1000000", "--frame-us", "2000", "--rundir", "run"])]
        started += [subprocess.Popen([build / "quern-gateway", "--connect", "run", "--keys", "keys", "--listen",
                                      f"127.0.0.1:{port}"]) for port in PORTS]
        try:
            while not all(answers(port) for port in PORTS):
                assert all(process.poll() is None for process in started), "a program has ended"
                time.sleep(0.1)
            progress, end = InProgress(), threading.Event()
            pool = concurrent.futures.ThreadPoolExecutor(CLIENTS)
            clients = [pool.submit(client, PORTS[i % 3], i, progress, end) for i in range(CLIENTS)]
            time.sleep(WARM_UP)
            progress.forget()
            time.sleep(seconds)
            progress.changes(0)
            at, refused = dict(progress.seconds), progress.refused
            end.set()
            for each in clients:
                each.result()  # one that failed is a failure
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
                process.wait()
    whole = sum(at.values())
    for count in sorted(at):
        print(f"{count:3} in progress {100 * at[count] / whole:5.1f} % of the time")
    mean = sum(count * share for count, share in at.items()) / whole
    above = sum(share for count, share in at.items() if count > LIMIT) / whole
    print(f"limit {LIMIT}: mean {mean:.2f}, above it {100 * above:.1f} % of {whole:.0f} s; {refused} refused, "
          f"load average {os.getloadavg()[0]}")


if __name__ == "__main__":
    main()
