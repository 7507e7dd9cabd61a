#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who gets in, and how much one may ask for and leave unread."""

import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from pool import BUILD, SCALED, WAIT, Base, Gateway, child_of, go_on, long_request, main, make_certificate, read_all, until


FILES = 200


class Limited(Gateway):
    """Of which the limit of open files cannot be raised, as a service may have it."""
    command = ("/bin/sh", "-c", f'ulimit -n {FILES}; exec "$0" "$@"', str(BUILD / "quern-gateway"))


class Bounds(Base):
    options = ("--request-seconds", "3", "--body-kb", "16", "--stream-kb", "64", "--connections", "40")

    def still_serves(self):
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)

    def test_who_reads_too_slowly_is_cut_off_and_nobody_else(self):
        slow = self.gateway.raw(long_request(stream=True))
        # Few enough to have room unread: on a busy machine this process reads late too.
        events = self.gateway.stream("/v1/completions", prompt="b", max_tokens=400)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.gateway.says("cut off: the client reads too slowly")
        self.nothing_runs()
        self.assertNotIn(b"[DONE]", read_all(slow))

    def test_a_body_that_does_not_come_is_not_waited_for(self):
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        waiting = [self.gateway.raw(head), self.gateway.raw(b"POST /v1/comp"), self.gateway.raw(b"")]
        for connection in waiting:
            self.assertEqual(read_all(connection), b"")
        self.still_serves()

    def test_a_large_body_is_413(self):
        status, _, answer = self.gateway.ask("POST", "/v1/completions", "x" * 100000)
        self.assertEqual((status, answer["error"]["type"]), (413, "invalid_request_error"))
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                                      b"Content-Length: 100000\r\n\r\n")
        self.assertIn(b" 413 ", read_all(connection).split(b"\r\n")[0])
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                      b"Content-Length: 1000000000000\r\n\r\n")
        self.assertIn(b" 413 ", read_all(connection).split(b"\r\n")[0])
        self.still_serves()

    def test_a_body_without_end_is_cut_off(self):
        connection = self.gateway.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                      b"Transfer-Encoding: chunked\r\n\r\n")
        with self.assertRaises(OSError):
            for _ in range(100000):
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        connection.close()
        self.still_serves()

    def test_heads_are_bounded(self):
        headers = b"".join(b"X-%d: y\r\n" % i for i in range(10000))
        for head in (b"GET /health HTTP/1.1\r\n" + headers + b"\r\n",
                     b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\n\r\n",
                     b"\0\1\2\3" * 1000 + b"\r\n\r\n",
                     b"GET /health HTTP/9.9\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: odd\r\n\r\n"):
            try:
                answer = read_all(self.gateway.raw(head))
            except OSError:
                answer = b""
            self.assertNotIn(b" 200 ", answer[:20], head[:40])
        self.still_serves()

    def test_too_many_connections_do_not_end_it(self):
        held = [socket.create_connection((self.gateway.host, self.gateway.port)) for _ in range(100)]
        for connection in held:
            connection.close()
        until(lambda: self.gateway.ask("GET", "/health")[0] == 200, "it serves again")


class LowLimit(Base):
    """Of open files, where 2048 connections are wanted."""

    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        super().setUpClass()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_a_soft_one_is_raised(self):
        with open(f"/proc/{self.gateway.process.pid}/limits") as limits:
            files = next(line.split()[3] for line in limits if line.startswith("Max open files"))
        self.assertGreater(int(files), FILES)

    def test_a_hard_one_is_said_and_leaves_the_gateway_what_it_needs(self):
        gateway = Limited(self.folder, self.rundir)
        gateway.ready()
        gateway.says(f"room for {FILES - 64} connections, not 2048: the limit of open files is low")
        asks = gateway.connect()

        def asked():
            asks.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 2}))
            answer = asks.getresponse()
            answer.read()
            return answer.status == 200
        until(asked, "it serves")
        held = [socket.create_connection((gateway.host, gateway.port)) for _ in range(FILES)]
        until(lambda: len(os.listdir(f"/proc/{gateway.process.pid}/fd")) > FILES - 64, "all are taken")
        os.kill(child_of(self.broker.process.pid, "quern-broker"), signal.SIGKILL)
        until(asked, "it finds the next broker")
        for connection in held + [asks]:
            connection.close()
        self.assertEqual(gateway.end(), 0)


class Unread(Base):
    """Whole answers of 5 MB each, and room for one of them."""
    options = ("--streams-mb", "8")

    def whole(self):
        """Asks for a whole answer and reads none of it."""
        body = json.dumps({"prompt": "x", "max_tokens": 4800, "n": 8, "logprobs": 12})
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(WAIT)
        connection.connect((self.gateway.host, self.gateway.port))
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return connection

    def unread(self):
        return self.gateway.metrics()["quern_stream_unread_bytes"]

    def test_whole_answers_that_nobody_reads_are_counted_and_bounded(self):
        first = self.whole()
        self.assertIn(b"200 OK", first.recv(15))
        self.assertGreater(self.unread(), 1 << 20)
        others = [self.whole() for _ in range(3)]
        heads = [connection.recv(15) for connection in others]
        self.assertLessEqual(self.unread(), 8 << 20)
        self.assertTrue(any(b" 429 " in head for head in heads), heads)
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)
        for connection in [first, *others]:
            connection.close()
        until(lambda: self.unread() < 4096, "all of it is given back")


class LargeBodies(Base):
    """That are refused, while another client reads a stream."""
    options = ("--request-seconds", "60")

    def resident(self):
        with open(f"/proc/{self.gateway.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024

    def test_bodies_with_too_many_values_take_no_memory_for_long(self):
        for inside in (b"{}", b"[[]]", b"1", b'""', b"0.1", b'{"a":1}'):
            body = b'{"prompt":[' + (inside + b",") * (8000000 // (len(inside) + 1)) + inside + b"]}"
            status, _, answer = self.gateway.ask("POST", "/v1/completions", body)
            self.assertIn(status, (400, 413), answer)
        if not SCALED:  # a sanitizer keeps what was freed
            until(lambda: self.resident() < 48, "memory is given back")
        self.assertEqual(self.gateway.metrics()["quern_body_bytes"], 0)


class Keys(Base):
    SECRET, CYD = "sk-0123456789abcdef", "sk-00112233445566ff"

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {cls.SECRET} requests=1 tokens=100\nbob sk-fedcba9876543210\n"
                        f"cyd {cls.CYD} requests=1\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file), "--cors", "https://chat.example", "--bodies-mb", "4", "--body-kb", "1024")
        super().setUpClass()
        shutil.rmtree(file.parent)

    def ask(self, key, **body):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return self.gateway.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2, **body}, headers)

    def test_one_key_leaves_room_for_the_bodies_of_others(self):
        length = 1000000
        held = [self.gateway.raw(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.CYD}\r\n"
                                 f"Content-Length: {length}\r\n\r\n".encode() + b"x" * (length - 1)) for _ in range(6)]
        until(lambda: self.gateway.ask("GET", "/metrics", None, {"Authorization": f"Bearer {self.SECRET}"})[2]
              .find("quern_body_bytes 1") > 0, "its half is full")
        status, _, answer = self.ask(self.SECRET, user="u" * 900000)
        self.assertEqual(status, 200, answer)
        for connection in held:
            connection.close()

    def test_only_who_has_a_key_is_served(self):
        for key in (None, "", "sk-0123456789abcdeg", self.SECRET + "0", self.SECRET[:-1]):
            status, headers, answer = self.ask(key)
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertEqual(answer["error"]["code"], "invalid_api_key")
        self.assertEqual(self.ask(self.SECRET)[0], 200)
        self.assertEqual(self.gateway.ask("GET", "/v1/models")[0], 401)
        self.assertEqual(self.gateway.ask("GET", "/v1/models", headers={"x-api-key": self.SECRET})[0], 200)
        self.assertEqual(self.gateway.ask("GET", "/status")[0], 401)
        self.assertEqual(self.gateway.ask("GET", "/status", headers={"Authorization": f"Bearer {self.SECRET}"})[0], 200)
        for path in ("/health", "/", "/page/main.js"):
            self.assertEqual(self.gateway.ask("GET", path)[0], 200)
        self.assertNotIn(self.SECRET, self.gateway.log())

    def test_a_key_has_no_more_than_it_may(self):
        self.assertEqual(self.ask(self.SECRET, max_tokens=101)[0], 400)
        self.assertEqual(self.ask(self.SECRET, max_tokens=51, n=2)[0], 400)
        self.assertEqual(self.ask("sk-fedcba9876543210", max_tokens=101)[0], 200)
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            body = json.dumps({"prompt": "x", "max_tokens": 50})
            first = self.gateway.raw(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                                     f"{self.SECRET}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            until(lambda: self.status()["running"] == 1, "the request runs")
            status, headers, _ = self.ask(self.SECRET)
            self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        finally:
            go_on(worker)
        self.assertIn(b" 200 OK", first.recv(4096))
        first.close()
        self.assertEqual(self.ask(self.SECRET)[0], 200)

    def test_an_answer_counts_for_its_key_until_it_is_read(self):
        body = json.dumps({"prompt": "x", "max_tokens": 34000, "logprobs": 12})  # more than the kernel takes
        for leave in (socket.socket.close, read_all):
            unread = socket.socket()
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.settimeout(WAIT)
            unread.connect((self.gateway.host, self.gateway.port))
            unread.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "
                           f"{self.CYD}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            self.assertIn(b"200 OK", unread.recv(15))
            status, headers, answer = self.ask(self.CYD)
            self.assertEqual((status, headers["Retry-After"]), (429, "1"), answer)
            self.assertEqual(self.ask(self.SECRET)[0], 200)
            leave(unread)
            until(lambda: self.ask(self.CYD)[0] == 200, "the key has its place again")

    def test_pages_of_one_origin_may_ask(self):
        for path in ("/v1/chat/completions", "/v1/models"):
            status, headers, _ = self.gateway.ask("OPTIONS", path)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "https://chat.example"))
            self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        self.assertEqual(self.ask(None)[1]["Access-Control-Allow-Origin"], "https://chat.example")


@unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
class Tls(Base):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.cert, cls.key = str(cls.place / "cert.pem"), str(cls.place / "key.pem")
        make_certificate(cls.cert, cls.key)
        cls.options = ("--tls-cert", cls.cert, "--tls-key", cls.key, "--request-seconds", "3", "--body-kb", "16",
                       "--stream-kb", "64")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.place, ignore_errors=True)

    def connected(self):
        plain = socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT)
        return self.gateway.tls.wrap_socket(plain, server_hostname=self.gateway.host)

    def test_it_serves_whole_answers_and_streams(self):
        self.assertEqual(self.gateway.post("/v1/completions", prompt="a", max_tokens=2)[0], 200)
        events = self.gateway.stream("/v1/completions", prompt="b", max_tokens=200)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        threads = [threading.Thread(target=lambda: self.gateway.stream("/v1/completions", prompt="c", max_tokens=500))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        self.assertEqual(self.gateway.ask("POST", "/v1/completions", "x" * 100000)[0], 413)

    def processor_seconds(self):
        with open(f"/proc/{self.gateway.process.pid}/stat") as stat:
            return sum(int(ticks) for ticks in stat.read().rsplit(") ", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def test_who_does_not_shake_hands_is_not_waited_for(self):
        before = self.processor_seconds()
        silent, half = self.gateway.raw(b""), self.gateway.raw(b"\x16\x03\x01\x02\x00\x01")
        plain = self.gateway.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for connection in (silent, half, plain):
            self.assertNotIn(b"200 OK", read_all(connection))
        self.assertEqual(self.gateway.ask("GET", "/health")[0], 200)
        if not SCALED:
            self.assertLess(self.processor_seconds() - before, 0.5, "nothing came for 3 s")

    def test_a_slow_reader_is_cut_off_and_one_that_leaves_ends_its_request(self):
        slow = self.connected()
        slow.sendall(long_request(stream=True))
        self.gateway.says("cut off: the client reads too slowly")
        slow.close()
        leaving = self.connected()
        leaving.sendall(long_request(stream=True))
        self.assertIn(b"200 OK", leaving.recv(4096))
        leaving.close()
        self.nothing_runs()

    def test_old_versions_are_refused(self):
        context = ssl.create_default_context(cafile=self.cert)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT) as plain:
            with self.assertRaises(OSError):
                context.wrap_socket(plain, server_hostname=self.gateway.host)

    def test_a_bad_certificate_ends_the_start_with_the_reason(self):
        def start(cert, key):
            said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--tls-cert", cert,
                                   *(["--tls-key", key] if key else [])], capture_output=True, text=True, timeout=WAIT)
            return said.returncode, said.stderr
        status, said = start(self.cert, "/nowhere")
        self.assertEqual((status, said.count("\n")), (1, 1))
        self.assertIn("/nowhere", said)
        self.assertEqual(start(self.key, self.cert)[0], 1)
        open_key = str(self.place / "open.pem")
        shutil.copy(self.key, open_key)
        os.chmod(open_key, 0o644)
        self.assertIn("everyone", start(self.cert, open_key)[1])
        self.assertEqual(start(self.cert, None)[0], 2)


if __name__ == "__main__":
    main()
