#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients that hold connections and ask nothing: others are served all the same."""

import json
import socket
import threading
import unittest

from pool import WAIT, Base, Gateway, main, read_all, until

PLACES = 64
BODY = json.dumps({"prompt": "a", "max_tokens": 2})
UNFINISHED = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


def own_address():
    """One of this machine that is not loopback's; None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") or address == "0.0.0.0" else address


def is_closed(connection):
    """Whether the other end has closed it, by now."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


class Connections(Base):
    # Nobody is closed for taking too long while this runs.
    options = ("--connections", str(PLACES), "--request-seconds", "3600", "--stream-kb", "1000000", "--streams-mb", "1000")

    def setUp(self):
        self.held = []

    def tearDown(self):
        for connection in self.held:
            connection.close()
        until(lambda: self.gateway.ask("GET", "/health")[0] == 200, "it serves")

    def hold(self, n, data=b""):
        for _ in range(n):
            connection = socket.create_connection((self.gateway.host, self.gateway.port), timeout=WAIT)
            self.held.append(connection)
            if data:
                connection.sendall(data)

    def ended(self):
        return self.gateway.metrics()["quern_connections_ended_total"]

    def asked(self):
        status, _, answer = self.gateway.ask("POST", "/v1/completions", BODY)
        self.assertEqual(status, 200)

    def test_silent_ones_end_for_new_ones_the_oldest_first(self):
        self.hold(8 * PLACES)
        self.asked()
        self.assertGreater(self.ended(), 6 * PLACES)
        self.gateway.says(f"of {PLACES} connections are in use")
        until(lambda: all(is_closed(connection) for connection in self.held[:6 * PLACES]), "the oldest are closed")
        self.assertFalse(is_closed(self.held[-1]))

    def test_half_a_head_is_not_a_request(self):
        self.hold(8 * PLACES, b"POST /v1/completions HTTP/1.1\r\nHost: loc")
        self.asked()

    def test_heads_whose_bodies_do_not_come_end_too(self):
        self.hold(3 * PLACES, UNFINISHED)
        for _ in range(3):
            self.asked()

    def test_heads_whose_bodies_do_not_come_keep_no_new_client_out(self):
        """However fast they come: nobody who asks at once is closed for them."""
        self.hold(PLACES, UNFINISHED)
        for _ in range(30):
            self.hold(5, UNFINISHED)
            self.asked()

    def test_connections_that_have_asked_something_end_when_there_are_no_others(self):
        self.hold(3 * PLACES, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.asked()

    def test_what_is_answered_is_not_touched_and_who_has_asked_stays_longer(self):
        kept = self.gateway.connect()

        def kept_asks():
            kept.request("POST", "/v1/completions", BODY)
            answer = kept.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
        kept_asks()
        socket_of_kept = kept.sock
        events = []
        stream = threading.Thread(target=lambda: events.extend(
            self.gateway.stream("/v1/completions", prompt="b", max_tokens=100000)))
        stream.start()
        try:
            until(lambda: self.gateway.metrics()["quern_http_requests_in_flight"] == 2, "the stream has begun")
            self.hold(8 * PLACES)
            self.asked()
            kept_asks()
            self.assertIs(kept.sock, socket_of_kept)
        finally:
            stream.join(WAIT)
            kept.close()
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")


class Addresses(Base):
    address = own_address()
    options = ("--listen", f"{address}:0", "--open", "--connections", str(PLACES), "--request-seconds", "3600")

    @classmethod
    def setUpClass(cls):
        if not cls.address:
            raise unittest.SkipTest("this machine has no address but loopback's")
        super().setUpClass()

    def test_one_address_gets_half_of_the_places(self):
        held = [self.gateway.raw(UNFINISHED) for _ in range(PLACES // 2)]
        self.assertEqual(read_all(self.gateway.raw(b"")), b"")
        self.gateway.says(f"an address has {PLACES // 2} connections")
        for connection in held[:2]:
            self.assertFalse(is_closed(connection))
            connection.close()
        until(lambda: self.serves(self.gateway), "places come back")
        self.assertGreaterEqual(self.gateway.metrics()["quern_connections_refused_total"], 1)
        for connection in held:
            connection.close()

    def serves(self, gateway):
        try:
            return gateway.ask("GET", "/health")[0] == 200
        except (OSError, ValueError):
            return False

    def test_the_number_is_an_option(self):
        few = Gateway(self.folder, self.rundir, "--listen", f"{self.address}:0", "--open", "--address-connections", "2")
        held = [few.raw(b"") for _ in range(2)]
        self.assertEqual(read_all(few.raw(b"")), b"")
        for connection in held:
            connection.close()
        until(lambda: self.serves(few), "it serves")
        few.end()
        all_of_them = Gateway(self.folder, self.rundir, "--listen", f"{self.address}:0", "--open", "--connections", "16",
                              "--address-connections", "0")
        all_of_them.ready()
        held = [all_of_them.raw(b"") for _ in range(40)]
        self.assertTrue(self.serves(all_of_them))
        for connection in held:
            connection.close()
        all_of_them.end()


if __name__ == "__main__":
    main()
