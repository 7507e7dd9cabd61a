#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Books that pools publish: a gateway finds the prompts that another one has sent."""

import fleet
from pool import main, until

NULL = ("--device", "null", "--ctx", "100000", "--frame-us", "0")


ANN, BOB = "annsecretannsecret", "bobsecretbobsecret"


class KeyedGateway(fleet.FleetGateway):
    """One that asks for keys, and is asked with Ann's."""

    def ask(self, method, path, body=None, headers=None):
        return super().ask(method, path, body, headers or {"Authorization": f"Bearer {ANN}"})


class Books(fleet.Base):
    def setUp(self):
        super().setUp()
        self.secret = self.folder / "secret"
        self.write_secret("the-secret-of-this-fleet")

    def write_secret(self, text):
        self.secret.write_text(text + "\n")
        self.secret.chmod(0o600)

    def two(self, *more):
        return [self.pool(name, *NULL, "--fleet-secret", str(self.secret), *more) for name in "ab"]

    def door(self, *more, kind=fleet.FleetGateway):
        gateway = kind(self.folder, *more, name=f"gateway-{len(self.gateways)}")
        self.gateways.append(gateway)
        for pool in self.pools:
            until(lambda pool=pool: gateway.is_up(pool), f"{pool.name} is up")
        gateway.ready()
        return gateway

    def with_secret(self, *more, **kind):
        return self.door("--fleet-secret", str(self.secret), *more, **kind)

    def where(self, gateway, ask):
        """Which pool the gateway sends it to."""
        before = [gateway.of("chosen_total", pool) for pool in self.pools]
        self.assertEqual(ask(gateway)[0], 200)
        after = [gateway.of("chosen_total", pool) for pool in self.pools]
        return [b - a for a, b in zip(before, after)].index(1)

    def pieces(self, gateway):
        return [gateway.of("prefix_pieces", pool) for pool in self.pools]

    def knows(self, gateway, least):
        until(lambda: sum(self.pieces(gateway)) >= least, f"it knows {least} pieces")

    @staticmethod
    def text(i):
        return lambda gateway: gateway.post("/v1/completions", prompt=f"prompt {i} " * 400, max_tokens=4)

    @staticmethod
    def chat(i):
        return lambda gateway: gateway.post("/v1/chat/completions", max_tokens=4,
                                            messages=[{"role": "system", "content": "Be brief. " * 50},
                                                      {"role": "user", "content": f"question {i} " * 400}])

    def test_a_gateway_sends_a_prompt_to_the_pool_that_got_it_from_another_gateway(self):
        self.two()
        first, second = self.with_secret(), self.with_secret()
        asked = [self.text(i) for i in range(6)] + [self.chat(i) for i in range(4)]
        where = [self.where(first, ask) for ask in asked]
        self.assertEqual(set(where), {0, 1})
        self.knows(second, 10 * 14)
        self.assertEqual([self.where(second, ask) for ask in asked], where)
        # One that comes late gets all of it.
        third = self.with_secret()
        self.knows(third, 10 * 14)
        self.assertEqual([self.where(third, ask) for ask in reversed(asked)], where[::-1])

    def test_a_pool_that_starts_again_is_known_to_have_nothing(self):
        a, b = self.two()
        gateway = self.with_secret()
        for i in range(6):
            self.assertEqual(self.text(i)(gateway)[0], 200)
        until(lambda: min(self.pieces(gateway)) > 0, "both have some")
        kept = gateway.of("prefix_pieces", b)
        a.kill()
        a.start()
        self.assertTrue(a.begins())
        until(lambda: gateway.of("prefix_pieces", a) == 0 and gateway.is_up(a), "it has nothing")
        self.assertEqual(gateway.of("prefix_pieces", b), kept)

    def test_tenants_stay_apart(self):
        self.two()
        keys = self.folder / "keys"
        keys.write_text(f"ann {ANN}\nbob {BOB}\n")
        keys.chmod(0o600)
        first, second = (self.with_secret("--keys", str(keys), kind=KeyedGateway) for _ in range(2))
        body = {"prompt": "the same " * 500, "max_tokens": 4}
        for key in (ANN, BOB):
            before = sum(self.pieces(second))
            self.assertEqual(first.ask("POST", "/v1/completions", body, {"Authorization": f"Bearer {key}"})[0], 200)
            self.knows(second, before + 17)

    def test_a_gateway_with_another_secret_or_none_serves_all_the_same(self):
        self.two()
        right = self.with_secret()
        none = self.door()
        self.write_secret("the-secret-of-another-fleet")
        wrong = self.with_secret()
        old = self.pool("c", *NULL)
        for gateway in (right, none, wrong):
            until(lambda gateway=gateway: gateway.is_up(old), "the third is up")
            for i in range(3):
                self.assertEqual(self.text(i)(gateway)[0], 200)
        for name in "ab":
            wrong.says(f"fleet: {name} does not report its cached prompts: bad_request: prefixes: secret")
        right.says("fleet: c does not report its cached prompts: unsupported: prefixes: the pool has no --fleet-secret")
        self.assertEqual(wrong.log().count("does not report"), 3)
        self.assertNotIn("does not report", none.log())
        self.assertEqual(sum(self.pieces(none)) + sum(self.pieces(wrong)), 0)
        self.knows(right, 14)


if __name__ == "__main__":
    main()
