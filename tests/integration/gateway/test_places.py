#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A pool in a run directory that is named relatively, or by a link; and a gateway whose pool is nowhere."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from pool import BUILD, MODEL, WAIT, Gateway, Process, main


class Relative(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.before = os.getcwd()
        os.chdir(cls.folder)
        cls.pool = Process(cls.folder, "quern", "serve", os.path.abspath(MODEL), "--device", "null", "--workers", "2",
                           "--rundir", "run", "--http", "127.0.0.1:0")
        cls.pool.says("ready: http://")
        cls.pool.says("worker-1 info ready")
        os.symlink("run", "link")
        (cls.folder / "elsewhere").mkdir()

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.before)
        cls.pool.end()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def quern(self, *words, cwd="."):
        return subprocess.run([str(BUILD / "quern"), *words], capture_output=True, text=True, timeout=WAIT, cwd=cwd,
                              stdin=subprocess.DEVNULL)

    def test_http_answers(self):
        gateway = object.__new__(Gateway)
        gateway.host, gateway.tls = "127.0.0.1", None
        gateway.port = int(re.search(r"ready: http://127.0.0.1:(\d+)", self.pool.log())[1])
        gateway.ready()
        self.assertEqual(gateway.post("/v1/completions", prompt=[300], max_tokens=2)[0], 200)

    def test_every_verb_finds_it_by_every_name(self):
        for option in ("--connect", "--rundir"):
            for name, cwd in (("run", "."), ("./run", "."), ("link", "."), ("../run", "elsewhere"), ("../link", "elsewhere"),
                              (str(self.folder / "run"), "/"), (str(self.folder / "link"), "/")):
                for words in (("status",), ("run", "-n", "2", "--raw", "x"), ("reload", "--gateway"), ("scale", "2")):
                    if words[0] in ("reload", "scale") and name not in ("link", "../run"):
                        continue  # they take a while
                    said = self.quern(words[0], option, name, *words[1:], cwd=cwd)
                    self.assertEqual(said.returncode, 0, (option, name, words, said.stderr))
        self.assertEqual(self.quern("drain", "--connect", "run", "1").returncode, 0)
        self.assertEqual(self.quern("undrain", "--connect", "link", "1").returncode, 0)

    def test_wrong_names_are_told_apart(self):
        for words, text in ((("status", "--connect", "nowhere"), "nowhere is not an endpoint"),
                            (("status", "--connect", "./nowhere"), f"no pool is running in {self.folder}/nowhere"),
                            (("status", "--connect", "elsewhere"), "0700 is required"),
                            (("status", "--rundir", "tcp://127.0.0.1:1"), '"tcp://127.0.0.1:1" is not a directory'),
                            (("scale", "--connect", "tcp://127.0.0.1:1", "2"), "is not a run directory"),
                            (("scale", "--connect", "", "2"), "--connect: the value is empty"),
                            (("reload", "--rundir", ""), "--rundir: the value is empty"),
                            (("status", "--rundir", "run", "--connect", "link"), "two different pools"),
                            (("drain", "--connect", "./nowhere", "1"), "no pool is running in")):
            said = self.quern(*words)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertIn(text, said.stderr)

    def test_examples_take_the_place_too(self):
        said = subprocess.run([str(BUILD / "examples" / "example_several"), "--connect", "link", "Who?"],
                              capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("Who?", said.stdout)
        said = subprocess.run([str(BUILD / "examples" / "example_hello"), "--connect", "elsewhere", "Who?"],
                              capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1)
        self.assertIn("0700 is required", said.stderr)


class Nowhere(unittest.TestCase):
    """Whoever connects before the gateway serves would wait for ever if it waited for its pool."""

    def test_a_gateway_without_its_pool_answers_503(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.addCleanup(shutil.rmtree, folder)
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(ours.close)
        gateway = subprocess.Popen([str(BUILD / "quern-gateway"), "--connect", str(folder / "run"), "--listen-fd",
                                    str(listener.fileno()), "--report-fd", str(theirs.fileno())],
                                   pass_fds=(listener.fileno(), theirs.fileno()), stderr=subprocess.PIPE)
        try:
            theirs.close()
            waiting = object.__new__(Gateway)
            (waiting.host, waiting.port), waiting.tls = listener.getsockname(), None
            begun = time.monotonic()
            status, headers, answer = waiting.post("/v1/completions", prompt="x")
            self.assertEqual((status, answer["error"]["code"], headers["Retry-After"]), (503, "unavailable", "1"))
            self.assertIn(f"no pool is running in {folder}/run", answer["error"]["message"])
            self.assertLess(time.monotonic() - begun, 30)
            self.assertEqual(waiting.ask("GET", "/health")[0], 503)
        finally:
            gateway.terminate()
            said = gateway.stderr.read().decode()
            gateway.stderr.close()
            gateway.wait(WAIT)
        self.assertIn("the pool cannot be reached: requests get 503", said)


class Impossible(unittest.TestCase):
    """What no machine can do is said once, and not tried again."""

    def test_more_blocks_than_memory_end_the_pool_at_once(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.addCleanup(shutil.rmtree, folder, True)
        begun = time.monotonic()
        said = subprocess.run([str(BUILD / "quern"), "serve", MODEL, "--device", "cpu", "--kv-blocks", "9999999",
                               "--rundir", str(folder / "run")], capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertRegex(said.stderr, r"9999999 KV blocks of .* do not fit: .* has .* in all")
        self.assertNotIn("restarting", said.stderr)
        self.assertLess(time.monotonic() - begun, 10)


if __name__ == "__main__":
    main()
