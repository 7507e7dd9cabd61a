#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Heads of requests as bytes: those whose end could be read in two ways are refused and end their connection, so that
nothing behind them becomes a request; others are answered, and the connection goes on."""

import pathlib
import re
import shutil
import socket
import tempfile

from pool import WAIT, Base, main, make_certificate, read_all

BODY = b'{"prompt": "a", "max_tokens": 2}'
POST, GET = b"POST /v1/completions HTTP/1.1\r\n", b"GET /health/live HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
NEXT = b"GET /page/main.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def length(value=b"%d" % len(BODY)):
    return b"Content-Length: " + value + b"\r\n"


# Each is followed by a body, or bytes that could be one, and another request.
HOSTILE = {
    "two Content-Length": POST + HOST + length() + length(b"5") + b"\r\n",
    "two that are equal": POST + HOST + length() + length() + b"\r\n",
    "a list of lengths": POST + HOST + length(b"32, 32") + b"\r\n",
    "Content-Length beside Transfer-Encoding": POST + HOST + length() + b"Transfer-Encoding: chunked\r\n\r\n",
    "the other way round": POST + HOST + b"Transfer-Encoding: chunked\r\n" + length() + b"\r\n",
    "a space before the colon": POST + HOST + b"Content-Length : 32\r\n\r\n",
    "a tab before the colon": POST + HOST + b"Transfer-Encoding\t: chunked\r\n\r\n",
    "a space before a name": POST + HOST + b"Accept: x\r\n Content-Length: 32\r\n\r\n",
    "a first field that begins with a space": POST + b" " + HOST + length() + b"\r\n",
    "a folded Transfer-Encoding": POST + HOST + b"Transfer-Encoding:\r\n chunked\r\n\r\n",
    "a folded field": POST + HOST + length() + b"X-Long: one\r\n two\r\n\r\n",
    "a field folded over three lines": POST + HOST + b"X-Long: one\r\n\ttwo\r\n three\r\n" + length() + b"\r\n",
    "a folded field at the end": GET + HOST + b"X-Long: one\r\n \r\n\r\n",
    "bare LF behind a field": POST + HOST + b"X: y\n" + length() + b"\r\n",
    "bare LF behind the request line": GET[:-2] + b"\n" + HOST + b"\r\n",
    "bare LF at the end": GET + HOST + b"\n",
    "bare LF everywhere": (GET + HOST + b"\r\n").replace(b"\r\n", b"\n"),
    "CR in a value": POST + HOST + b"X: y\rContent-Length: 32\r\n\r\n",
    "CR CR LF": POST + HOST + b"X: y\r\r\n" + length() + b"\r\n",
    "zero in a value": POST + HOST + b"X: y\0z\r\n" + length() + b"\r\n",
    "zero in a name": POST + HOST + b"X\0: y\r\n" + length() + b"\r\n",
    "zero in front of a line": POST + HOST + b"\0X: y\r\n" + length() + b"\r\n",
    "a control character in a value": GET + HOST + b"X: y\x0bz\r\n\r\n",
    "a name with a bracket": GET + HOST + b"X[1]: y\r\n\r\n",
    "no name": GET + HOST + b": y\r\n\r\n",
    "no colon": GET + HOST + b"X\r\n\r\n",
    "an unknown encoding": POST + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
    "an encoding that ends with chunked": POST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "chunked, and something": POST + HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n",
    "chunked with a tail": POST + HOST + b"Transfer-Encoding: chunked;q=1\r\n\r\n",
    "chunked in quotes": POST + HOST + b'Transfer-Encoding: "chunked"\r\n\r\n',
    "chunked and a vertical tab": POST + HOST + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "two encodings": POST + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    "an empty encoding": POST + HOST + b"Transfer-Encoding:\r\n\r\n",
    "an encoding with HTTP/1.0": POST.replace(b"1.1", b"1.0") + HOST + b"Transfer-Encoding: chunked\r\n\r\n",
    "a length with a sign": POST + HOST + length(b"+32") + b"\r\n",
    "a negative length": POST + HOST + length(b"-1") + b"\r\n",
    "a length in hexadecimal": POST + HOST + length(b"0x20") + b"\r\n",
    "a length with a space": POST + HOST + length(b"3 2") + b"\r\n",
    "an empty length": POST + HOST + length(b"") + b"\r\n",
    "a length beyond 64 bits": POST + HOST + length(b"18446744073709551648") + b"\r\n",
    "no Host": GET + b"\r\n",
    "two Host": GET + HOST + HOST + b"\r\n",
    "two Host with HTTP/1.0": GET.replace(b"1.1", b"1.0") + HOST + HOST + b"\r\n",
    "an empty Host": GET + b"Host:\r\n\r\n",
    "a Host with a path": GET + b"Host: localhost/x\r\n\r\n",
    "a Host with a user": GET + b"Host: x@localhost\r\n\r\n",
    "a list of hosts": GET + b"Host: localhost, x\r\n\r\n",
    "a Host with a port that is none": GET + b"Host: localhost:x\r\n\r\n",
    "two Origin": GET + HOST + b"Origin: http://localhost\r\nOrigin: https://evil.example\r\n\r\n",
    "two Authorization": GET + HOST + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "a whole address as target": b"GET http://localhost/health/live HTTP/1.1\r\n" + HOST + b"\r\n",
    "a host as target": b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no slash": b"GET health/live HTTP/1.1\r\n" + HOST + b"\r\n",
    "two spaces before the target": b"GET  /health/live HTTP/1.1\r\n" + HOST + b"\r\n",
    "two spaces before the version": b"GET /health/live  HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space in the target": b"GET /health/live x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space behind the version": b"GET /health/live HTTP/1.1 \r\n" + HOST + b"\r\n",
    "a tab in the request line": b"GET /health/live\tHTTP/1.1\r\n" + HOST + b"\r\n",
    "CR in the target": b"GET /health/live?\rx HTTP/1.1\r\n" + HOST + b"\r\n",
    "zero in the target": b"GET /health/live\0x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a zero that is encoded": b"GET /health/live%00x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a method that is no word": b"G(T /health/live HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET /health/live\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\n" + HOST + b"\r\n",
    "HTTP/2.0": b"GET /health/live HTTP/2.0\r\n" + HOST + b"\r\n",
    "http/1.1": b"GET /health/live http/1.1\r\n" + HOST + b"\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

# Chunks that are none.
CHUNKS = {
    "a negative size": b"-1\r\n" + BODY,
    "a size with a sign": b"+20\r\n" + BODY,
    "0x": b"0x20\r\n" + BODY,
    "no size": b"\r\n" + BODY,
    "a space": b"20 \r\n" + BODY,
    "a size beyond 64 bits": b"10000000000000020\r\n" + BODY,
    "no line's end behind the data": b"20\r\n" + BODY + b"x0\r\n\r\n",
}

GOOD = {
    "a body with a length": POST + HOST + length() + b"\r\n" + BODY,
    "names in any case": POST + b"hOST: localhost\r\ncontent-LENGTH: %d\r\n\r\n" % len(BODY) + BODY,
    "no space, tabs and spaces around values": POST + b"Host:\t localhost \t\r\nX:y\r\nContent-Length:32\r\n\r\n" + BODY,
    "an empty value": GET + HOST + b"X:\r\nY: \r\n\r\n",
    "a value with a colon, and bytes beyond ASCII": GET + HOST + "X: a: b, ü; \"c\"\r\n\r\n".encode(),
    "a field twice": GET + HOST + b"Accept: a\r\nAccept: b\r\n\r\n",
    "many fields": GET + HOST + b"".join(b"X-%d: %s\r\n" % (i, b"y" * i) for i in range(100)) + b"\r\n",
    "fields beyond the buffer that a head begins in": GET + HOST + b"".join(
        b"X-%d: %s\r\n" % (i, b"y" * 400) for i in range(45)) + b"\r\n",
    "a body with GET": b"GET /health/live HTTP/1.1\r\n" + HOST + length() + b"\r\n" + BODY,
    "an empty body": b"GET /health/live HTTP/1.1\r\n" + HOST + length(b"0") + b"\r\n",
    "zeros before the length": POST + HOST + length(b"0032") + b"\r\n" + BODY,
    "a query": b"GET /health/live?x=%20%41&y=a+b HTTP/1.1\r\n" + HOST + b"\r\n",
    "what is encoded": b"GET /health/%6c%69ve HTTP/1.1\r\n" + HOST + b"\r\n",
    "an empty line in front": b"\r\n" + GET + HOST + b"\r\n",
    "cookies": GET + HOST + b'Cookie: a=b; c="d"; e\r\n\r\n',
    "an offer of HTTP/2": GET + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
}


def statuses(answers):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answers)]


class Heads(Base):
    options = ("--request-seconds", "5")  # chunks that are none may look like the beginning of one

    def talk(self, *parts):
        """All that is answered until the gateway closes the connection, and it must."""
        connection = self.connected()
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass  # it has closed already
        return read_all(connection)

    def connected(self):
        connection = socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def assert_refused(self, got, name):
        """Once; libmicrohttpd 0.9 sends the head of its own answer to a wrong length twice, and 1.0 does not answer
        a zero."""
        self.assertIn(got, ([400], [400, 400], [413], [413, 413], [505], *([[]] if name == "zero in the target" else [])))

    def test_what_could_end_in_two_places_is_refused_and_ends_the_connection(self):
        for name, head in HOSTILE.items():
            for parts in ((head + BODY + NEXT,), (head + CHUNKED + NEXT,), (head, NEXT), (head[:30], head[30:], NEXT)):
                with self.subTest(name, parts=len(parts)):
                    self.assert_refused(statuses(self.talk(*parts)), name)

    def test_a_second_head_is_judged_too(self):
        for name, head in HOSTILE.items():
            with self.subTest(name):
                got = statuses(self.talk(GOOD["a body with a length"] + head + BODY + NEXT))
                self.assertEqual(got[0], 200)
                self.assert_refused(got[1:], name)

    def test_the_reason_is_said(self):
        answers = self.talk(HOSTILE["two Content-Length"] + BODY)
        self.assertIn(b"the request has more than one Content-Length header", answers)
        self.assertIn(b"Connection: close", answers)
        self.assertIn(b"Content-Type: application/json", answers)

    def test_good_heads_are_answered_and_the_connection_goes_on(self):
        for name, request in GOOD.items():
            for parts in ((request + NEXT,), (request, NEXT), (request[:40], request[40:], NEXT)):
                with self.subTest(name, parts=len(parts)):
                    self.assertEqual(statuses(self.talk(*parts)), [200, 200])

    def test_chunks_that_are_none_end_the_connection(self):
        head = POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        for name, body in CHUNKS.items():
            with self.subTest(name):
                got = statuses(self.talk(head + body + NEXT))
                self.assertLessEqual(len(got), 1)
                self.assertNotIn(200, got)

    def test_whatever_ends_a_chunked_body_no_other_request_is_made_of_what_follows(self):
        head = POST + HOST + b"Transfer-Encoding: Chunked\r\n\r\n"
        smuggled = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for body in (CHUNKED, CHUNKED.replace(b"\r\n", b"\n"), CHUNKED.replace(b"\r\n{", b";a=b\r\n{"),
                     b"20;\n" + BODY + b"\r\n0;a\nb\r\n\r\n", CHUNKED[:-2] + b"X: y\n\n"):
            got = statuses(self.talk(head + body + smuggled))
            self.assertIn(got, ([200], [200, 400], [400]), body)
            self.assertNotIn(404, got)

    def test_old_http_ends_its_connection_unless_it_asks(self):
        old = b"GET /health/live HTTP/1.0\r\n"
        self.assertEqual(statuses(self.talk(old + b"\r\n" + NEXT)), [200])
        self.assertEqual(statuses(self.talk(old + HOST + b"\r\n" + NEXT)), [200])
        self.assertEqual(statuses(self.talk(old + HOST + b"Connection: keep-alive\r\n\r\n" + NEXT)), [200, 200])


class HeadsInTls(Heads):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cert, key = str(cls.place / "cert.pem"), str(cls.place / "key.pem")
        make_certificate(cert, key)
        cls.options = (*Heads.options, "--tls-cert", cert, "--tls-key", key)
        super().setUpClass()

    def connected(self):
        return self.gateway.tls.wrap_socket(super().connected(), server_hostname=self.gateway.host)


if __name__ == "__main__":
    main()
