#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Workers and settings that change under load: no answer is lost, cut or different, and bad wishes change nothing."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from pool import BUILD, MODEL, WAIT, Process, child_of, children_of, main, until
from test_reload import BODIES, Load, ask

PACED = BUILD / "tests/integration/paced"  # its worker takes 4 ms longer for each step


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")
        self.config = self.folder / "quern.conf"

    def tearDown(self):
        if self.pool.process.poll() is None:
            self.pool.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, **settings):
        self.settings = settings
        self.config.write_text("".join(f"{name.replace('_', '-')} = {value}\n" for name, value in settings.items()))

    def serve(self, programs=BUILD, **settings):
        self.write(model=MODEL, threads=1, http="127.0.0.1:0", **settings)
        self.pool = Process(self.folder, programs / "quern-broker", "--config", str(self.config), "--rundir", self.rundir)
        self.pool.says("ready: http")
        self.port = int(self.pool.log().rsplit("ready: http", 1)[1].split()[0].rsplit(":", 1)[1])
        until(lambda: all(worker["state"] == "ready" for worker in self.workers()), "the workers are ready")
        until(self.answers_well, "the gateway answers")

    def paced(self):
        """A folder of programs whose answers take long enough to be disturbed, with little to compute."""
        programs = self.folder / "programs"
        programs.mkdir()
        for program in (PACED / "quern-broker", PACED / "quern-worker", BUILD / "quern-gateway"):
            shutil.copy2(program, programs)
        return programs

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)

    def answers_well(self):
        connection = self.connect()
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        return status == 200

    def workers(self):
        said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--connect", self.rundir], capture_output=True,
                              timeout=WAIT, check=True)
        return json.loads(said.stdout)["workers"]

    def states(self):
        return [worker["state"] for worker in self.workers()]

    def become(self, states):
        """The next broker knows of all workers; those that were there register with it again."""
        until(lambda: self.states() == states, f"the workers are {states}")

    def quern(self, *words):
        """The exit status of the command, and what it said."""
        said = subprocess.run([str(BUILD / "quern"), *words, "--rundir", self.rundir], capture_output=True, text=True,
                              timeout=2 * WAIT)
        return said.returncode, said.stderr

    def do(self, *words):
        status, said = self.quern(*words)
        self.assertEqual(status, 0, said + self.pool.log())
        return said

    def refused(self, reason, *words, status=1):
        before = [(worker["name"], worker["pid"]) for worker in self.workers()]
        found, said = self.quern(*words)
        self.assertEqual(found, status, said)
        self.assertIn(reason, said)
        self.assertEqual([(worker["name"], worker["pid"]) for worker in self.workers()], before)
        return said

    def under_load(self, *steps):
        """Does the steps one after the other while clients ask and compare their answers with those of before."""
        connection = self.connect()
        expected = [ask(connection, body)[0] for body in BODIES]
        connection.close()
        load = Load(self.connect, expected)
        try:
            for step in steps:
                load.some_more()
                step()
            load.some_more()
        finally:
            load.end()
        self.assertEqual(load.broken, [], self.pool.log())

    def test_workers_come_and_go_under_load(self):
        self.serve(programs=self.paced(), device="cpu", workers=2, ctx=512)

        def scale(n):
            said = self.do("scale", str(n))
            self.assertIn(f"the pool has {n} worker", said)
            self.become(["ready"] * n)

        def drain(index, states):
            self.do("drain", f"worker-{index}")
            self.assertEqual(self.states(), states)
            self.assertIn(f"undrain worker-{index}", self.workers()[index]["reason"])

        def undrain(index, states):
            self.do("undrain", str(index))
            self.assertEqual(self.states(), states)

        self.under_load(
            lambda: scale(4), lambda: scale(1), lambda: scale(3), lambda: drain(1, ["ready", "absent", "ready"]),
            lambda: self.assertIn("the broker and the gateway", self.do("reload")),  # the drained one stays so
            lambda: self.become(["ready", "absent", "ready"]),
            lambda: drain(0, ["absent", "absent", "ready"]),
            lambda: os.kill(child_of(self.pool.process.pid, "quern-broker"), signal.SIGKILL),
            lambda: self.become(["absent", "absent", "ready"]),
            lambda: undrain(0, ["ready", "absent", "ready"]), lambda: undrain(1, ["ready"] * 3), lambda: scale(2))
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_settings_change_under_load(self):
        self.serve(programs=self.paced(), device="cpu", workers=2, ctx=1024, slots=8)

        def change(seen, **settings):
            self.write(**{**self.settings, **settings})
            self.do("reload", "--config")
            self.become(["ready"] * self.settings["workers"])
            self.assertEqual({(worker["slots"], worker["context"]) for worker in self.workers()}, {seen})

        self.under_load(lambda: change((4, 1024), slots=4), lambda: change((4, 512), ctx=512, workers=3, journal=64),
                        lambda: change((6, 1024), slots=6, ctx=1024, workers=1, cached_blocks=8, retention=5),
                        lambda: change((6, 1024), workers=2, kv_blocks=200, client_requests=100))

    def test_keys_are_those_of_the_file(self):
        keys = self.folder / "keys"
        keys.write_text("ada sk-0123456789abcdef\n")
        keys.chmod(0o600)
        self.serve(device="null", workers=1)

        def status(*headers):
            connection = self.connect()
            connection.request("GET", "/v1/models", headers=dict(headers))
            found = connection.getresponse().status
            connection.close()
            return found

        self.assertEqual(status(), 200)
        self.write(**self.settings, http_keys=keys)
        self.do("reload", "--config")
        until(lambda: status() == 401, "the gateway asks for a key")
        self.assertEqual(status(("Authorization", "Bearer sk-0123456789abcdef")), 200)

    def test_what_makes_no_sense_changes_nothing(self):
        self.serve(device="null", workers=2, ctx=512)
        for wrong in ("0", "x", "65", "", "1.5", "99999999999999999999"):
            self.refused("quern scale: N: ", "scale", wrong, status=2)
        for negative in ("-1", "-25"):
            self.refused("quern scale: N: it cannot be negative", "scale", negative, status=2)
        self.refused("unexpected argument", "scale", "2", "3", status=2)
        self.refused("no N given", "scale", status=2)
        self.refused("unknown worker-2: the pool has 2", "drain", "worker-2")
        self.refused("worker-0 is not drained", "undrain", "0")
        self.refused("WORKER", "drain", "worker-", status=2)
        self.refused("WORKER", "drain", "worker--1", status=2)
        self.do("drain", "1")
        self.refused("worker-1 is drained already", "drain", "worker-1")
        self.refused("worker-0 cannot be drained: no other worker serves", "drain", "0")
        self.do("undrain", "1")
        self.do("drain", "0")
        self.refused("none of the remaining 1 workers is serving", "scale", "1")
        self.do("undrain", "0")
        self.refused("exclude each other", "reload", "--config", "--gateway", status=2)

    def test_of_a_file_that_is_half_valid_nothing_is_taken(self):
        self.serve(device="null", workers=2, ctx=512)
        good = self.settings
        for reason, more in (("unknown setting \"bogus\"", {"bogus": 1}), ("ctx: ", {"ctx": "many"}),
                             ("workers: ", {"workers": 0}), ("workers: ", {"workers": 1000}),
                             ("device: it cannot change while", {"device": "cpu"}),
                             ("model: it cannot change while", {"model": self.config}),
                             ("http: it cannot change while", {"http": "127.0.0.1:1"}),
                             ("prefix-store: it cannot change while", {"prefix_store": 64}),
                             ("journal: 4000 MiB", {"journal": 4000}),
                             ("http-tls-cert and http-tls-key must be given together", {"http_tls_cert": "x"})):
            self.write(**{**good, "slots": 3, **more})
            self.refused(reason, "reload", "--config")
        self.write(**{name: value for name, value in good.items() if name != "model"})
        self.refused("names no model", "reload", "--config")
        self.config.unlink()
        self.refused("No such file", "reload", "--config")
        self.assertEqual({worker["slots"] for worker in self.workers()}, {32})

    def test_what_its_readers_refuse_is_refused_before_a_worker_is_touched(self):
        self.serve(device="cpu", workers=1, ctx=512)
        good = self.settings
        template = self.folder / "template"
        template.write_text("{% if %}")
        keys = self.folder / "keys"
        keys.write_text("ada sk-0123456789abcdef rpm=0\n")
        keys.chmod(0o600)
        gateway = child_of(self.pool.process.pid, "quern-gateway")
        for reason, more in (("unknown KV type \"q9\"", {"kv_type": "q9"}),
                             ("--quantize: unknown type \"Q9\"", {"quantize": "Q9"}),
                             ("is already Q8_0; quantize from", {"quantize": "Q4_K_M"}),
                             ("--cublas: \"often\"", {"cublas": "often"}),
                             ("/nowhere: No such file", {"chat_template": "/nowhere"}),
                             ("expected a value", {"chat_template": template}),
                             ("fleet-secret: /nowhere: ", {"fleet_secret": "/nowhere"}),
                             ("/nowhere: No such file", {"http_keys": "/nowhere"}),
                             ("rpm: 0 is out of range", {"http_keys": keys}),
                             ("/nowhere: No such file", {"http_tls_cert": "/nowhere", "http_tls_key": "/nowhere"}),
                             ("--request-log: /nowhere/log", {"http_log": "/nowhere/log"}),
                             ("--otlp: nonsense: not a URL", {"http_otlp": "nonsense"}),
                             ("--cors: \"a.example\" is not the origin", {"http_cors": "a.example"}),
                             ("--hosts: \",,\"", {"http_hosts": ",,"})):
            self.write(**{**good, "slots": 3, "http_log": self.folder / "log", **more})
            self.assertIn("nothing was changed: ", self.refused(reason, "reload", "--config"))
            self.assertFalse((self.folder / "log").exists())
        self.assertEqual(child_of(self.pool.process.pid, "quern-gateway"), gateway)
        self.assertEqual({worker["slots"] for worker in self.workers()}, {32})
        self.assertTrue(self.answers_well())
        self.write(**{**good, "slots": 3})
        self.do("reload", "--config")
        self.assertEqual({worker["slots"] for worker in self.workers()}, {3})

    def test_settings_with_which_no_worker_starts_are_put_back(self):
        """What only a device can judge, as memory."""
        self.serve(device="cpu", workers=2, ctx=512)
        self.write(**{**self.settings, "workers": 3, "kv_blocks": 1 << 26, "http_log": self.folder / "log"})
        status, text = self.quern("reload", "--config")
        self.assertEqual(status, 1)
        self.assertIn("KV blocks of", text)
        self.assertIn("restoring the old settings", text)
        self.assertFalse((self.folder / "log").exists())
        status, text = self.quern("scale", "2")
        self.assertTrue(status == 0 or "from before a failed reload are being restored" in text, text)
        until(lambda: [(worker["state"], worker["slots"]) for worker in self.workers()] == [("ready", 32)] * 2,
              "the workers are as they were")
        until(self.answers_well, "the gateway answers")
        until(lambda: self.quern("scale", "2")[0] == 0, "that has ended")

    def test_one_that_dies_while_it_is_drained_stays_out(self):
        self.serve(device="null", workers=2)
        pid = self.workers()[1]["pid"]
        os.kill(pid, signal.SIGSTOP)
        command = subprocess.Popen([str(BUILD / "quern"), "drain", "1", "--rundir", self.rundir], stderr=subprocess.PIPE,
                                   text=True)
        self.pool.says("drain: worker-1 hands over")
        self.refused("a worker is being drained", "scale", "3")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(command.wait(WAIT), 0, command.stderr.read())
        command.stderr.close()
        self.assertEqual(self.states(), ["ready", "absent"])
        self.assertEqual(len(children_of(self.pool.process.pid, "quern-worker")), 1)
        self.assertEqual(self.pool.end(), 0)


if __name__ == "__main__":
    main()
