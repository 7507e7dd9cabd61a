#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bounds of keys that hold for all gateways together, before one pool and before several."""

import json
import math
import os
import shutil
import signal
import subprocess

import fleet
from pool import BUILD, MODEL, Base, Gateway, Process, long_request, main, until

NAMES = ("ada", "bob", "cy")
KEYS = {name: f"sk-0123456789abcde-{name}" for name in NAMES}
SLOW = ("--device", "null", "--ctx", "1000000")
PACED = "tests/integration/paced/quern-broker"  # 4 ms a token


def write_keys(folder, **limits):
    file = folder / "keys"
    file.write_text("".join(f"{name} {KEYS[name]} {of_name}\n" for name, of_name in limits.items()))
    file.chmod(0o600)
    return str(file)


def bearer(name):
    return {"Authorization": f"Bearer {KEYS[name]}"}


def ask(gateway, name, **body):
    return gateway.ask("POST", "/v1/completions", {"prompt": [300, 301], "max_tokens": 1, **body}, bearer(name))


def is_refused(gateway, name, text, **body):
    """Whether it is refused with this text; a request that is not is left."""
    connection = gateway.connect()
    connection.request("POST", "/v1/completions", json.dumps({"prompt": [300, 301], "max_tokens": 1, "stream": True, **body}), bearer(name))
    answer = connection.getresponse()
    assert answer.status in (200, 429), answer.read()
    message = "" if answer.status == 200 else json.loads(answer.read())["error"]["message"]
    answer.close()
    connection.close()
    return text in message


class Stream:
    """A request whose answer takes longer than any test, until it is left. It is asked for until there is room."""

    def __init__(self, gateway, name):
        until(lambda: self.begins(gateway, name), "the stream begins")

    def begins(self, gateway, name):
        request = long_request(stream=True).replace(b"\r\n", f"\r\nAuthorization: Bearer {KEYS[name]}\r\n".encode(), 1)
        self.connection = gateway.raw(request)
        head = self.connection.recv(1000)
        assert b" 200 " in head or b" 429 " in head, head
        return b" 200 " in head

    def leave(self):
        self.connection.close()


class OnePool(Base):
    @classmethod
    def start_broker(cls):
        cls.keys = write_keys(cls.folder, ada="requests=3", bob="tokens=400000", cy="requests=2 rpm=1000")
        cls.options = ("--keys", cls.keys, *Base.options)
        cls.broker = Process(cls.folder, PACED, MODEL, *SLOW, "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def setUp(self):
        self.others = []

    def tearDown(self):
        for other in self.others:
            other.end()

    def another(self):
        folder = self.folder / f"another-{self.id()}-{len(self.others)}"
        folder.mkdir()
        self.others.append(Gateway(folder, self.rundir, *self.options))
        self.others[-1].ready()
        return self.others[-1]

    def test_requests_through_one_gateway_count_at_the_others(self):
        second, third = self.another(), self.another()
        streams = [Stream(self.gateway, "ada") for _ in range(2)] + [Stream(second, "ada")]
        for gateway in (self.gateway, second, third):
            until(lambda gateway=gateway: is_refused(gateway, "ada", "requests in progress, counting all gateways"), "it is refused")
        until(lambda: ask(third, "cy")[0] == 200, "another key has its own")
        streams.pop().leave()
        until(lambda: ask(third, "ada")[0] == 200, "there is room again")
        for stream in streams:
            stream.leave()
        until(lambda: ask(third, "ada")[0] == 200, "there is room")

    def test_tokens_count_too(self):
        other = self.another()
        stream = Stream(self.gateway, "bob")  # which may have 300000
        until(lambda: is_refused(other, "bob", "300000 tokens requested, counting all gateways", max_tokens=100001), "it is refused")
        until(lambda: ask(other, "bob")[0] == 200, "a smaller one has room")
        stream.leave()

    def test_what_a_dead_gateway_had_is_forgotten(self):
        other = self.another()
        streams = [Stream(other, "ada") for _ in range(3)]
        until(lambda: is_refused(self.gateway, "ada", "requests in progress, counting all gateways"), "it is refused")
        os.kill(other.process.pid, signal.SIGKILL)
        self.others.pop().process.wait()
        until(lambda: ask(self.gateway, "ada")[0] == 200, "there is room")
        for stream in streams:
            stream.leave()

    def test_a_new_broker_is_told_again(self):
        other = self.another()
        streams = [Stream(other, "ada") for _ in range(3)]
        until(lambda: is_refused(self.gateway, "ada", "requests in progress, counting all gateways"), "it is refused")
        before = self.status()
        os.kill(before["broker_pid"], signal.SIGKILL)
        until(lambda: self.status()["boot"] > before["boot"], "the next broker serves")
        until(lambda: is_refused(self.gateway, "ada", "requests in progress, counting all"), "it is refused again")
        for stream in streams:
            stream.leave()


class Fleet(fleet.Base):
    def setUp(self):
        super().setUp()
        self.clients = self.folder / "clients"
        self.clients.mkdir(mode=0o755)
        subprocess.run([str(BUILD / "quern"), "keys", "--client", "door", str(self.clients)], check=True, capture_output=True)
        shutil.move(self.clients / "door.cert_secret", self.folder)

    def door(self, **limits):
        gateway = fleet.FleetGateway(self.folder, "--keys", write_keys(self.folder, **limits), "--client-key",
                                     str(self.folder / "door.cert_secret"), name=f"gateway-{len(self.gateways)}")
        self.gateways.append(gateway)
        for pool in self.pools:
            until(lambda pool=pool: self.is_up(gateway, pool), f"{pool.name} is up")
        until(lambda: ask(gateway, "cy")[0] == 200, "it serves")
        return gateway

    @staticmethod
    def is_up(gateway, pool):
        text = gateway.ask("GET", "/metrics", None, bearer("cy"))[2]
        return f'quern_fleet_up{{pool="{pool.name}"}} 1' in text

    def several(self, *names):
        return [self.pool(name, *SLOW, clients=self.clients, broker=PACED) for name in names]

    def test_limits_a_minute_hold_over_pools_and_gateways(self):
        self.several("a", "b")
        limits = {"ada": "rpm=6", "bob": "tpm=1000", "cy": ""}
        one, other = self.door(**limits), self.door(**limits)
        left = [ask(one, "ada")[1]["x-ratelimit-remaining-requests"] for _ in range(4)]
        self.assertEqual(left, ["5", "4", "3", "2"])  # whatever pools they went to
        passed = [4]

        def is_full():
            """Until the other has heard of those, it may let as many pass as it would alone."""
            status = ask(other, "ada")[0]
            passed[0] += status == 200
            return status == 429
        until(is_full, "the other knows of those")
        self.assertLessEqual(passed[0], 4 + 6)
        status, headers, answer = ask(other, "ada")
        self.assertEqual((status, headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]),
                         (429, "6", "0"))
        wait = 60 * math.log(passed[0] * math.expm1(1 / 6))  # use.h
        self.assertTrue(1 <= int(headers["Retry-After"]) <= wait + 1, (headers["Retry-After"], wait))
        self.assertIn("the limit of 6 requests a minute is reached (rpm)", answer["error"]["message"])
        until(lambda: is_refused(one, "ada", "(rpm)"), "the first knows of the rest")
        self.assertEqual(ask(one, "bob", prompt=list(range(300, 900)), max_tokens=500, ignore_eos=True)[0], 200)
        until(lambda: is_refused(other, "bob", "the limit of 1000 tokens a minute is reached (tpm)"), "tokens are known")

    def test_requests_at_once_hold_while_the_first_pool_dies(self):
        first = self.several("a", "b")[0]
        limits = {"ada": "requests=2", "cy": ""}
        one, other = self.door(**limits), self.door(**limits)
        streams = [Stream(one, "ada") for _ in range(2)]
        until(lambda: is_refused(other, "ada", "requests in progress, counting all gateways"), "it is refused")
        first.kill()
        until(lambda: not self.is_up(other, first), "the pool is seen to be dead")
        until(lambda: is_refused(other, "ada", "requests in progress, counting all gateways"), "it is refused by the other's word")
        for stream in streams:
            stream.leave()
        until(lambda: ask(other, "ada")[0] == 200, "there is room")

    def test_a_pool_that_does_not_know_its_clients_shares_nothing(self):
        self.pool("a", *SLOW, broker=PACED)  # any client
        limits = {"ada": "requests=1", "cy": ""}
        one, other = self.door(**limits), self.door(**limits)
        for gateway in (one, other):
            gateway.says("a does not share limits of keys between gateways: bad_request: tenants: needs a client")
        stream = Stream(one, "ada")
        self.assertEqual(ask(one, "ada")[0], 429)
        self.assertEqual(ask(other, "ada")[0], 200)
        self.assertEqual(other.log().count("does not share"), 1)
        stream.leave()


if __name__ == "__main__":
    main()
