#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gateway as a process: started by a pool, watched, drained."""

import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from pool import BUILD, MODEL, WAIT, Base, Process, child_of, go_on, main, make_certificate, until


class Served(unittest.TestCase):
    """quern serve --http."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def serve(self, *arguments):
        return Process(self.folder, "quern-broker", MODEL, "--device", "null", "--rundir", self.rundir, *arguments)

    def addresses(self, pool):
        return [line.rsplit("ready: ", 1)[1] for line in pool.log().splitlines() if "ready: http" in line]

    def get(self, url):
        try:
            with urllib.request.urlopen(url + "/health", timeout=WAIT) as answer:
                return answer.status
        except (urllib.error.URLError, OSError):
            return 0

    def test_it_is_started_watched_and_ended(self):
        pool = self.serve("--http", "127.0.0.1:0")
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        until(lambda: self.get(url) == 200, "it serves")
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGKILL)
        url = until(lambda: self.addresses(pool)[1:], "another one listens")[0]
        until(lambda: self.get(url) == 200, "it serves again")
        self.assertEqual(pool.end(), 0, pool.log())
        self.assertEqual(self.get(url), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_its_options_reach_it(self):
        cert, key, log = (str(self.folder / name) for name in ("cert.pem", "key.pem", "requests"))
        make_certificate(cert, key)
        pool = self.serve("--http", "127.0.0.1:0", "--http-tls-cert", cert, "--http-tls-key", key, "--http-log", log)
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        self.assertTrue(url.startswith("https://"), url)
        context = ssl.create_default_context(cafile=cert)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(url + "/missing", timeout=WAIT, context=context)
        missing.exception.close()
        line = json.loads(until(lambda: pathlib.Path(log).read_text(), "a line of the log"))
        self.assertEqual((line["path"], line["status"]), ("/missing", 404))
        os.rename(log, log + ".1")
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGHUP)
        until(lambda: os.path.exists(log), "the log is opened anew")
        self.assertEqual(pool.end(), 0, pool.log())
        for wrong in (("--http-log", log), ("--http", "127.0.0.1:0", "--http-tls-cert", cert)):
            self.assertEqual(self.serve(*wrong).process.wait(WAIT), 2)

    def test_what_cannot_be_served_ends_the_pool_with_the_reason(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            pool = self.serve("--http", f"127.0.0.1:{taken.getsockname()[1]}")
            self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("Address already in use", pool.log())
        pool = self.serve("--http", "0.0.0.0:0")
        self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("give a file of keys", pool.log())
        keys = self.folder / "short-keys"
        keys.write_text("alice short\n")
        keys.chmod(0o600)
        pool = self.serve("--http", "127.0.0.1:0", "--http-keys", str(keys))
        self.assertEqual(pool.process.wait(WAIT), 1)
        said = pool.log()[pool.begun:]
        self.assertIn("quern-gateway: " + str(keys) + ":1: the key of alice has 5 bytes", said)
        self.assertIn("supervisor error the gateway ended with status 1", said)
        self.assertNotIn("broker error", said)

    def test_a_build_without_gateway_says_so(self):
        alone = self.folder / "quern-broker"
        shutil.copy(BUILD / "quern-broker", alone)
        said = subprocess.run([alone, MODEL, "--rundir", self.rundir, "--http", "127.0.0.1:0"], capture_output=True,
                              text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertIn("libmicrohttpd", said.stderr)


class Measured(unittest.TestCase):
    def test_the_benchmark_tells_what_came(self):
        said = subprocess.run([BUILD / "quern", "bench", "gateway", "-s", "3", "-n", "40", "-i", "10", "-p", "5", "-r", "1", "-J"],
                              capture_output=True, text=True, timeout=3 * WAIT)
        self.assertEqual(said.returncode, 0, said.stderr)
        told = json.loads(said.stdout)
        self.assertEqual((told["bench"], told["streams"], told["tokens"], told["idle_streams"]), ("gateway", 3, 40, 10))
        for kind in ("", "single_"):
            self.assertGreater(told[kind + "tokens_per_s"], 0)
            self.assertTrue(0 < told[kind + "events_per_s"] <= told[kind + "tokens_per_s"], told)
        self.assertTrue(0 < told["first_http_us"] <= told["first_http_p99_us"], told)
        self.assertTrue(0 < told["memory_before"] < told["memory"], told)
        alone = subprocess.run([BUILD / "quern", "bench", "gateway", "-s", "0"], capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--streams", alone.stderr)


class Draining(Base):
    def test_a_signal_lets_streams_end_and_takes_nothing_new(self):
        events = []
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)  # it is not to end before the gateway was told
        reader = threading.Thread(target=lambda: events.extend(
            self.gateway.stream("/v1/completions", prompt="a", max_tokens=20000)))
        reader.start()
        try:
            until(lambda: self.status()["running"] == 1, "the stream runs")
            self.gateway.process.send_signal(signal.SIGTERM)
            self.gateway.says("no new requests")
        finally:
            go_on(worker)
        with self.assertRaises(OSError):
            self.gateway.ask("GET", "/health")
        reader.join(WAIT)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.gateway.process.wait(WAIT), 0)


if __name__ == "__main__":
    main()
