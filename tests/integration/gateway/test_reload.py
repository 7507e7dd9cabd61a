#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quern serve --http under planned and unplanned changes: no connection is refused, no answer is cut."""

import http.client
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
import time
import unittest

from pool import BUILD, MODEL, SCALED, WAIT, Base, Process, child_of, children_of, go_on, main, make_certificate, until

RELOADS = 3
PAUSE = 0.05 if SCALED else 0.02  # seconds between requests of a load
BODIES = [{"prompt": f"request {kind}", "max_tokens": 40 if SCALED else 200, "seed": kind, "stream": kind % 2 == 1} for kind in range(4)]


class Unanswered(Exception):
    """The connection ended before anything of an answer came: one that was kept may."""


def ask(connection, body):
    """What of an answer has to be the same each time, and whether the connection goes on."""
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
    except (ConnectionError, ssl.SSLEOFError) as error:
        raise Unanswered(repr(error)) from error
    text = answer.read().decode()  # IncompleteRead where it is cut
    if answer.status != 200:
        raise AssertionError(f"status {answer.status}: {text}")
    goes_on = answer.getheader("Connection", "").lower() != "close"
    if not body["stream"]:
        return json.loads(text)["choices"], goes_on
    events = text.split("\n\n")
    if events[-2:] != ["data: [DONE]", ""]:
        raise AssertionError(f"a stream ends with {events[-2:]}")
    choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events[:-2]]
    return ("".join(choice["text"] for choice in choices), choices[-1]["finish_reason"]), goes_on


class Load:
    """Threads that ask again and again, with connections that are kept and with new ones, and compare."""

    def __init__(self, connect, expected):
        self.connect, self.expected = connect, expected
        self.broken, self.answers, self.closed, self.repeated, self.over = [], 0, 0, 0, False
        self.threads = [threading.Thread(target=self.run, args=(kind, keep))
                        for kind in range(len(BODIES)) for keep in (True, False)]
        self.probe = threading.Thread(target=self.be_balancer)
        self.probe.start()
        for thread in self.threads:
            thread.start()

    def run(self, kind, keep):
        connection, kept = self.connect(), False
        try:
            while not self.over:
                try:
                    found, goes_on = ask(connection, BODIES[kind])
                except Unanswered:
                    if not kept:
                        raise
                    connection.close()  # as whoever keeps connections has to
                    connection, kept = self.connect(), False
                    self.repeated += 1
                    continue
                kept = True
                if found != self.expected[kind]:
                    raise AssertionError(f"request {kind}: another answer: {found!r}")
                self.answers += 1
                time.sleep(PAUSE)
                self.closed += not goes_on
                if not keep or not goes_on:
                    connection.close()
                    connection, kept = self.connect(), False
        except Exception as error:  # whatever it is, nobody was to see it
            self.broken.append(f"request {kind}, {'kept' if keep else 'new'} connection: {error!r}")
        connection.close()

    def be_balancer(self):
        """Who sends requests elsewhere as soon as the gateway says that it is not well."""
        while not self.over and not self.broken:
            try:
                connection = self.connect()
                connection.request("GET", "/health")
                answer = connection.getresponse()
                if answer.status != 200:
                    self.broken.append(f"health: {answer.status}: {answer.read()}")
                connection.close()
                time.sleep(PAUSE)
            except Exception as error:
                self.broken.append(f"health: {error!r}")

    def some_more(self):
        """Waits until everybody was answered for a while."""
        until_now = self.answers
        until(lambda: self.broken or self.answers >= until_now + (1 if SCALED else 4) * len(self.threads), "answers go on")

    def end(self):
        self.over = True
        for thread in [*self.threads, self.probe]:
            thread.join(WAIT)


class Reload(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")
        self.tls = None

    def tearDown(self):
        if self.pool.process.poll() is None:
            self.pool.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def serve(self, *arguments, http_at="127.0.0.1:0", programs=BUILD):
        self.pool = Process(self.folder, programs / "quern-broker", MODEL, "--device", "null", "--workers", "2", "--threads", "1",
                            "--rundir", self.rundir, "--http", http_at, *arguments)
        self.began()

    def began(self):
        self.pool.says("ready: http")
        self.host, port = self.pool.log().rsplit("ready: http", 1)[1].split()[0].rsplit("/", 1)[1].rsplit(":", 1)
        self.port = int(port)
        self.parent = self.pool.process.pid
        until(self.is_ready, "a worker is ready")

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=WAIT, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=WAIT)

    def is_ready(self):
        connection = self.connect()
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        return status == 200

    def gateway(self):
        return child_of(self.parent, "quern-gateway")

    def reload(self, *options):
        return subprocess.run([str(BUILD / "quern"), "reload", "--rundir", self.rundir, *options], capture_output=True, text=True,
                              timeout=4 * WAIT)

    def learn(self):
        connection = self.connect()
        expected = [ask(connection, body)[0] for body in BODIES]
        connection.close()
        return expected

    def gateways(self):
        return children_of(self.parent, "quern-gateway")

    def one_gateway(self):
        until(lambda: len(self.gateways()) == 1, "the ones before have ended")

    def begin_reload(self):
        """Has the gateway replaced by one that stands still before it has reached the pool: the command, and its pid."""
        before, broker = self.gateways(), child_of(self.parent, "quern-broker")
        os.kill(broker, signal.SIGSTOP)
        command = subprocess.Popen([str(BUILD / "quern"), "reload", "--gateway", "--rundir", self.rundir],
                                   stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: self.gateways() > before, "the next one starts")
            (held,) = self.gateways() - before
            os.kill(held, signal.SIGSTOP)
        finally:
            go_on(broker)
        return command, held

    def serves(self):
        try:
            return self.is_ready()
        except (OSError, http.client.HTTPException):
            return False  # it was accepted by one that was killed

    def reload_under_load(self):
        """Reloads while clients ask and compare. The pids of the gateways that there were."""
        load = Load(self.connect, self.learn())
        pids = [self.gateway()]
        try:
            for _ in range(RELOADS):
                load.some_more()
                said = self.reload()
                self.assertEqual(said.returncode, 0, said.stderr + self.pool.log())
                self.assertIn("the broker and the gateway were replaced", said.stderr)
                load.some_more()
            self.one_gateway()
            pids.append(self.gateway())
        finally:
            load.end()
        self.assertEqual(load.broken, [], self.pool.log())
        self.assertGreater(load.closed, 0, "no kept connection was told that it ends")
        self.assertLessEqual(load.repeated, RELOADS * len(BODIES), "kept connections end without need")
        return pids

    def test_clients_notice_nothing(self):
        log = self.folder / "requests"
        self.serve("--http-log", str(log))
        before, after = self.reload_under_load()
        self.assertNotEqual(before, after)
        for line in log.read_text().splitlines():
            self.assertEqual(json.loads(line)["status"], 200)  # whole lines, whoever wrote them
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_neither_do_those_of_https_and_certificates_are_replaced(self):
        cert, key, wrong = (str(self.folder / name) for name in ("cert.pem", "key.pem", "wrong.pem"))
        make_certificate(cert, key)
        self.tls = ssl.create_default_context(cafile=cert)
        self.serve("--http-tls-cert", cert, "--http-tls-key", key)
        self.reload_under_load()
        before = self.gateway()
        os.rename(key, wrong)
        pathlib.Path(key).write_text("this is no key")
        os.chmod(key, 0o600)
        said = self.reload()
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn(f"{cert} and {key} are not a matching certificate and key", said.stderr)
        self.assertIn("keeping the old one", said.stderr)
        self.assertEqual(self.gateway(), before)
        self.assertTrue(self.is_ready())
        os.remove(key)
        make_certificate(cert, key)
        old, self.tls = self.tls, ssl.create_default_context(cafile=cert)
        worker = child_of(self.parent, "quern-worker")
        said = self.reload("--gateway")
        self.assertEqual(said.returncode, 0, self.pool.log())
        self.assertRegex(said.stderr, r"the gateway is replaced\nthe gateway was replaced in [\d.]+ s\n")
        self.assertTrue(pathlib.Path(f"/proc/{worker}").exists())
        self.one_gateway()
        self.assertTrue(self.is_ready())
        self.tls = old
        with self.assertRaises(ssl.SSLError):
            self.is_ready()
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_a_file_of_keys_that_is_wrong_leaves_the_one_before(self):
        keys = self.folder / "keys"
        keys.touch(0o600)
        keys.write_text("alice 0123456789abcdef0123\n")
        self.serve("--http-keys", str(keys))
        before = self.gateway()
        keys.write_text("bob short\n")
        said = self.reload("--gateway")
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn(str(keys), said.stderr)
        self.assertEqual(self.gateway(), before)
        # Should it die now, nobody else suffers, and it is there again as soon as it can be.
        os.kill(before, signal.SIGKILL)
        until(lambda: self.pool.log().count("the gateway ended with status 1: restarting it") > 1, "it is tried")
        keys.write_text("bob 0123456789abcdef0123\n")
        until(self.is_ready, "it serves again")
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_a_killed_gateway_is_no_reason_to_refuse_anybody(self):
        self.serve()
        refused, served, over = [], [0], threading.Event()

        def come_and_go():
            while not over.is_set():
                try:
                    served[0] += self.is_ready()
                except ConnectionRefusedError as error:
                    refused.append(error)
                except (OSError, http.client.HTTPException):
                    pass  # it was accepted by the one that was killed

        threads = [threading.Thread(target=come_and_go) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                before, some = self.gateway(), served[0]
                os.kill(before, signal.SIGKILL)
                until(lambda: served[0] >= some + 10 and self.gateway_other_than(before), "the next one serves")
        finally:
            over.set()
            for thread in threads:
                thread.join(WAIT)
        self.assertEqual(refused, [])
        self.assertEqual(self.pool.end(), 0, self.pool.log())
        with self.assertRaises(ConnectionRefusedError):
            self.is_ready()

    def gateway_other_than(self, before):
        try:
            return self.gateway() != before
        except AssertionError:
            return False  # there is none now

    def test_a_killed_broker_is_noticed_by_nobody(self):
        self.serve()
        load = Load(self.connect, self.learn())
        try:
            for _ in range(RELOADS):
                load.some_more()
                os.kill(child_of(self.parent, "quern-broker"), signal.SIGKILL)
                load.some_more()
        finally:
            load.end()
        self.assertEqual((load.broken, load.repeated), ([], 0), self.pool.log())
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_one_that_dies_is_started_again_while_the_next_is_on_trial(self):
        self.serve()
        before = self.gateway()
        command, held = self.begin_reload()
        try:
            os.kill(before, signal.SIGKILL)
            until(self.serves, "there is a gateway")
            self.assertIsNone(command.poll())
            self.assertEqual(len(self.gateways() - {before, held}), 1)
        finally:
            go_on(held)
            said = command.communicate(timeout=2 * WAIT)[1]
        self.assertEqual(command.returncode, 0, said + self.pool.log())
        self.one_gateway()
        self.assertEqual(self.gateway(), held)
        self.assertTrue(self.is_ready())
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_no_gateway_follows_when_the_reload_failed_for_the_broker(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for name in ("quern", "quern-broker", "quern-worker", "quern-gateway"):
            shutil.copy2(BUILD / name, programs)
        self.serve(programs=programs)
        before = self.gateway()
        command, held = self.begin_reload()
        try:
            bad = self.folder / "bad"
            bad.write_text("#!/bin/sh\nexit 3\n")
            bad.chmod(0o700)
            bad.rename(programs / "quern-broker")
            os.kill(child_of(self.parent, "quern-broker"), signal.SIGKILL)
            said = command.communicate(timeout=2 * WAIT)[1]
            self.assertEqual(command.returncode, 1, said + self.pool.log())
            self.assertIn("the new broker ended with status 3: restarting the old one", said)
        finally:
            go_on(held)  # were it there, it would take over now
            command.kill()
        self.one_gateway()
        self.assertEqual(self.gateway(), before)
        said = self.reload("--gateway")
        self.assertEqual(said.returncode, 0, said.stderr + self.pool.log())
        until(self.serves, "the pool serves")
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_the_one_before_stays_until_the_next_has_reached_the_pool(self):
        self.serve()
        before, broker = self.gateway(), child_of(self.parent, "quern-broker")
        os.kill(broker, signal.SIGSTOP)  # it is killed for that some seconds later, and the next one can be reached
        said = self.reload("--gateway")
        self.assertEqual(said.returncode, 0, said.stderr + self.pool.log())
        self.pool.says("another gateway is taking over")
        log = self.pool.log()
        self.assertLess(log.index("the broker stalled and was killed"), log.index("another gateway is taking over"))
        self.one_gateway()
        self.assertNotEqual(self.gateway(), before)
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_it_is_done_when_the_one_before_accepts_no_more(self):
        self.serve()
        before = self.gateway()
        os.kill(before, signal.SIGSTOP)  # as one that a busy machine does not let run
        try:
            command = subprocess.Popen([str(BUILD / "quern"), "reload", "--gateway", "--rundir", self.rundir],
                                       stderr=subprocess.PIPE, text=True)
            until(lambda: self.gateways() > {before}, "the next one starts")
            until(self.serves, "the next one serves")
            with self.assertRaises(subprocess.TimeoutExpired, msg="both may accept connections"):
                command.wait(1)
        finally:
            go_on(before)
        said = command.communicate(timeout=WAIT)[1]
        self.assertEqual(command.returncode, 0, said + self.pool.log())
        self.assertIn("another gateway is taking over", self.pool.log())
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_one_that_does_not_stop_accepting_is_killed(self):
        self.serve()
        before = self.gateway()
        os.kill(before, signal.SIGSTOP)
        said = self.reload("--gateway")
        self.assertEqual(said.returncode, 0, said.stderr + self.pool.log())
        self.pool.says("a replaced gateway was killed by signal 9")
        self.assertNotIn(before, self.gateways())
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def gateway_in_status(self):
        said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--connect", self.rundir], capture_output=True,
                              timeout=WAIT, check=True)
        return json.loads(said.stdout)["gateway_pid"]

    def test_the_status_names_the_process(self):
        self.serve()
        before = self.gateway()
        until(lambda: self.gateway_in_status() == before, "the first one is known")
        said = self.reload()
        self.assertEqual(said.returncode, 0, said.stderr + self.pool.log())
        self.one_gateway()
        self.assertNotEqual(self.gateway(), before)
        until(lambda: self.gateway_in_status() == self.gateway(), "the next one is known, to the next broker too")
        os.kill(self.gateway(), signal.SIGKILL)
        until(lambda: self.gateways() and self.gateway_in_status() == self.gateway(), "the one after that is known")
        shown = subprocess.run([str(BUILD / "quern"), "status", "--connect", self.rundir], capture_output=True, text=True,
                               timeout=WAIT, check=True).stdout
        self.assertIn(f"processes: supervisor {self.parent}, broker {child_of(self.parent, 'quern-broker')}, gateway ", shown)
        self.assertEqual(self.pool.end(), 0, self.pool.log())

    def test_a_pool_without_http_has_no_gateway_to_replace(self):
        self.pool = Process(self.folder, "quern-broker", MODEL, "--device", "null", "--rundir", self.rundir)
        self.pool.says("ready:")
        said = self.reload("--gateway")
        self.assertEqual((said.returncode, said.stderr), (1, "quern: the pool serves no HTTP\n"))
        self.assertEqual(self.reload().returncode, 0)

    def test_a_socket_of_the_service_manager_is_served(self):
        with socket.create_server(("127.0.0.1", 0)) as made:
            self.port = made.getsockname()[1]
            script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"' % made.fileno()
            log = open(self.folder / "quern-broker.log", "ab")
            self.pool = Process.__new__(Process)
            self.pool.log_path, self.pool.begun = self.folder / "quern-broker.log", 0
            with log:
                self.pool.process = subprocess.Popen(
                    ["sh", "-c", script, "sh", str(BUILD / "quern"), "serve", MODEL, "--device", "null", "--rundir",
                     self.rundir, "--http", "127.0.0.1:1"], stderr=log, stdout=log, preexec_fn=os.setpgrp,
                    pass_fds=[made.fileno()])
            port = self.port
            self.began()
            self.assertEqual(self.port, port)
            self.assertEqual(self.pool.end(), 0, self.pool.log())
            waits = socket.create_connection(("127.0.0.1", port), timeout=WAIT)  # it is the manager's, and stays
            waits.close()


class Retired(Base):
    """A gateway that another one takes over from, as SIGUSR1 tells it."""

    def test_what_is_under_way_ends_and_what_is_idle_is_closed(self):
        idle, silent, half, begun, streaming = (self.gateway.connect() for _ in range(5))
        for connection in (idle, begun, streaming):  # they are kept
            connection.request("GET", "/health")
            connection.getresponse().read()
        silent.connect()
        body = json.dumps({"prompt": "b", "max_tokens": 3}).encode()
        half.putrequest("POST", "/v1/completions")
        half.putheader("Content-Length", str(len(body)))
        half.endheaders(body[:9])
        begun.sock.sendall(b"GET /health HTTP/1.1\r\nHo")  # a head, which is not whole yet
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)  # its answers are to end after the gateway was told
        try:
            streaming.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 2000, "stream": True}))
            until(lambda: self.status()["running"] == 1, "the stream runs")
            self.gateway.process.send_signal(signal.SIGUSR1)
            self.gateway.says("another gateway is taking over; 1 request in progress")
            for connection in (idle, silent):
                self.assertEqual(connection.sock.recv(1), b"")
                if connection is idle:  # what is between two requests has ended, and not what is amid one
                    begun.sock.sendall(b"st: localhost\r\n\r\n")
                    answer = http.client.HTTPResponse(begun.sock)
                    answer.begin()
                    self.assertEqual((answer.status, answer.getheader("Connection").lower()), (200, "close"))
        finally:
            go_on(worker)
        with self.assertRaises(ConnectionRefusedError):  # nobody else has its socket
            self.gateway.ask("GET", "/health")
        half.send(body[9:])
        answer = half.getresponse()
        self.assertEqual((answer.status, answer.getheader("Connection").lower()), (200, "close"))
        self.assertEqual(json.loads(answer.read())["usage"]["completion_tokens"], 3)
        answer = streaming.getresponse()
        self.assertTrue(answer.read().endswith(b"data: [DONE]\n\n"))
        for connection in (idle, silent, half, begun, streaming):
            connection.close()
        self.assertEqual(self.gateway.process.wait(WAIT), 0)


if __name__ == "__main__":
    main()
