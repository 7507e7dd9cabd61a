#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quern-gateway --fleet: several pools, of which some go, come, or are not what their files say."""

import json
import os
import signal
import subprocess
import threading
import time

import fleet
from pool import BUILD, MODEL, WAIT, Process, go_on, main, until

NULL = ("--device", "null", "--ctx", "100000", "--frame-us", "0")


class Fleet(fleet.Base):
    def null_pool(self, name, *more):
        return self.pool(name, *NULL, *more)

    def two(self):
        return self.null_pool("a"), self.null_pool("b")

    def ask(self, gateway, prompt="x", **more):
        return gateway.post("/v1/completions", prompt=prompt, max_tokens=8, **more)

    def test_a_gateway_serves_all_pools_of_its_folder(self):
        a = self.null_pool("a", "--alias", "first")
        b = self.null_pool("b", "--alias", "second")
        gateway = self.gateway()
        names = {model["id"] for model in gateway.ask("GET", "/v1/models")[2]["data"]}
        self.assertLess({"first", "second"}, names)
        for name, pool in (("first", a), ("second", b)):
            before = gateway.of("chosen_total", pool)
            for _ in range(3):
                status, _, answer = self.ask(gateway, model=name)
                self.assertEqual((status, answer["model"]), (200, name), answer)
            self.assertEqual(gateway.of("chosen_total", pool), before + 3)
        self.assertEqual(self.ask(gateway, model="third")[0], 404)
        self.assertEqual(gateway.ask("GET", "/status?pool=b")[0], 200)
        self.assertEqual(gateway.ask("GET", "/status?pool=c")[0], 404)

    def test_work_is_spread_and_prompts_come_back_to_where_they_were(self):
        a, b = self.two()
        gateway = self.gateway()
        for i in range(8):
            self.assertEqual(self.ask(gateway, f"{i} " * 200)[0], 200)
        spread = [gateway.of("chosen_total", pool) for pool in (a, b)]
        self.assertGreaterEqual(min(spread), 3, spread)
        for i in range(8):
            where = [gateway.of("chosen_total", pool) for pool in (a, b)]
            for _ in range(3):
                self.ask(gateway, f"again {i} " * 400)
            now = [gateway.of("chosen_total", pool) for pool in (a, b)]
            self.assertIn(3, [after - before for after, before in zip(now, where)])

    def test_a_member_that_is_taken_away_ends_its_streams_and_gets_no_more(self):
        a, b = self.two()
        gateway = self.gateway()
        stream = gateway.raw(b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70\r\n\r\n' +
                             json.dumps({"prompt": "x", "max_tokens": 60000, "stream": True}).ljust(70).encode())
        busy = until(lambda: next((pool for pool in (a, b) if gateway.of("requests", pool) == 1), None), "it runs")
        other = b if busy is a else a
        text = busy.file.read_text()
        busy.file.unlink()
        until(lambda: gateway.of("draining", busy) == 1, "it is drained")
        before = gateway.of("chosen_total", other)
        for _ in range(4):
            self.assertEqual(self.ask(gateway)[0], 200)
        self.assertEqual(gateway.of("chosen_total", other), before + 4)
        data = b""
        while b"[DONE]" not in data:
            part = stream.recv(1 << 20)
            self.assertTrue(part, data[-300:])
            data = data[-10:] + part
        stream.close()
        busy.file.write_text(text)
        until(lambda: gateway.of("draining", busy) == 0, "it is a member again")

    def test_a_request_without_output_goes_to_another_pool_when_its_own_is_killed(self):
        a, b = self.two()
        gateway = self.gateway()
        # Frozen, they take requests and answer nothing.
        os.kill(a.broker, signal.SIGSTOP)
        answers = []
        asked = [threading.Thread(target=lambda: answers.append(self.ask(gateway, "y" * 2000, seed=7))) for _ in range(6)]
        for thread in asked:
            thread.start()
        begun = time.monotonic()
        for thread in asked:
            thread.join()
        self.assertEqual([status for status, _, _ in answers], [200] * 6, answers)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(len({answer["choices"][0]["text"] for _, _, answer in answers}), 1)
        a.kill()
        for _ in range(5):
            self.assertEqual(self.ask(gateway)[0], 200)
        a.start()
        until(lambda: gateway.is_up(a), "it is back")

    def test_a_broker_that_is_replaced_moves_nothing(self):
        a, b = self.two()
        gateway = self.gateway()
        soon = 0
        for pool in (a, b) * 6:
            before = gateway.of("moved_total", pool)
            seconds = pool.replace_broker()
            for _ in range(5):
                self.assertEqual(self.ask(gateway)[0], 200)
            until(lambda: gateway.is_up(pool), "it is up")
            if seconds < fleet.SOON:
                soon += 1
                self.assertEqual(gateway.of("moved_total", pool), before, gateway.log())
            if soon == 4:
                return
        if soon == 0:
            self.skipTest("the machine is too busy to replace a broker in time")

    def test_files_that_are_wrong_harm_nobody_else(self):
        a, b = self.two()
        stranger = self.pool("c", *NULL, member=False)
        gateway = self.gateway(a, b)
        (self.fleet / "half").write_text("connect = \"tcp://127.0.0.1:770")
        (self.fleet / "wrong-key").write_text(stranger.text(key=fleet.key_of(fleet.new_keys(self.folder / "other"))))
        (self.fleet / "doubled").write_text(a.text())
        b.file.write_text("nonsense")
        for said in ("half:1: unterminated quote", "doubled ignored: a has the same address",
                     "b:1: \"nonsense\" is not NAME = VALUE; keeping its previous contents",
                     "wrong-key: it has none of the server keys that are configured for it"):
            gateway.says(said)
        for _ in range(10):
            self.assertEqual(self.ask(gateway)[0], 200)
        self.assertGreater(min(gateway.of("chosen_total", b), gateway.of("up", b)), 0)
        time.sleep(6)  # it is tried again
        self.assertEqual(gateway.log().count("wrong-key: "), 1, gateway.log())
        (self.fleet / "wrong-key").write_text(stranger.text())
        until(lambda: gateway.metrics().get('quern_fleet_up{pool="wrong-key"}') == 1, "it is reached with its key")

    def test_a_key_is_replaced_by_the_next_one(self):
        a, b = self.two()
        gateway = self.gateway()
        before = a.key()
        fleet.new_keys(a.home / "next")
        a.end()
        for name in ("quern.cert", "quern.cert_secret"):
            (a.home / name).unlink()
            (a.home / "next" / name).rename(a.home / name)
        a.file.write_text(a.text(key=before) + f'server-key-next = "{a.key()}"\n')
        a.member = ()
        time.sleep(1.5)
        a.start()
        until(lambda: gateway.is_up(a), "it is reached with the next key")
        gateway.says("a: its server key has changed; trying server-key-next")

    def test_a_folder_that_others_can_write_is_refused(self):
        self.fleet.chmod(0o775)
        said = subprocess.run([str(BUILD / "quern-gateway"), "--fleet", str(self.fleet), "--listen", "127.0.0.1:0"],
                              capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1)
        self.assertIn("and so redirect prompts: chmod go-w", said.stderr)
        said = subprocess.run([str(BUILD / "quern-gateway"), "--fleet", "x", "--connect", "y"], capture_output=True,
                              text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 2)
        self.assertIn("--fleet excludes --connect and --server-key", said.stderr)

    def test_reports_have_every_pool_of_the_folder(self):
        pool = self.pool("a", "--device", "null")
        key = ("b" if pool.key()[0] == "a" else "a") + pool.key()[1:]  # two members with one key would be one
        (self.fleet / "b").write_text(pool.text(key, fleet.free_ports()))
        (self.fleet / "c").write_text("connect = 1")
        gateway = self.gateway(pool)
        until(lambda: gateway.metrics().get("quern_fleet_members") == 2, "both are members")
        pools = {member["name"]: member for member in gateway.ask("GET", "/status")[2]["pools"]}
        self.assertEqual([pools["a"]["up"], pools["b"]["up"]], [True, False])
        self.assertEqual(gateway.of("kv_free_blocks", pool), gateway.of("kv_blocks", pool))
        self.assertGreater(gateway.of("slots", pool), 0)
        said = subprocess.run([str(BUILD / "quern"), "status", "--fleet", str(self.fleet), "--json"], capture_output=True,
                              timeout=60, check=True)
        told = {each["name"]: each for each in json.loads(said.stdout)["pools"]}
        self.assertEqual([told[name]["state"] for name in "abc"], ["ready", "absent", "invalid"])
        self.assertEqual(told["a"]["status"]["workers"][0]["state"], "ready")
        said = subprocess.run([str(BUILD / "quern"), "status", "--fleet", str(self.folder / "none")], capture_output=True,
                              timeout=60)
        self.assertEqual((said.returncode, said.stdout), (1, b""))
        self.assertIn(b"No such file", said.stderr)

    def test_a_name_has_a_pool_at_each_of_its_addresses(self):
        pool = self.null_pool("a")

        class Named(fleet.FleetGateway):
            def endpoint(self, rundir):
                return "--fleet", f"dns:127.0.0.1:{pool.port}", "--server-key", str(pool.home / "quern.cert")

        gateway = Named(self.folder)
        self.gateways.append(gateway)
        until(lambda: gateway.metrics().get('quern_fleet_up{pool="127.0.0.1"}') == 1, "it is up")
        gateway.ready()
        self.assertEqual(self.ask(gateway)[0], 200)
        for arguments in (("dns:localhost:7700",), ("dns:localhost", "--server-key", "x"), ("dns:x:1", "--connect", "y")):
            said = subprocess.run([str(BUILD / "quern-gateway"), "--fleet", *arguments], capture_output=True, timeout=60)
            self.assertNotEqual(said.returncode, 0)
            self.assertRegex(said.stderr, b"--fleet .*requires --server-key|is not dns:NAME:PORT|--fleet excludes --connect")

    def test_a_question_to_a_pool_that_falls_silent_is_refused_soon(self):
        a, _ = self.two()
        gateway = self.gateway()
        self.assertEqual(gateway.post("/tokenize", content="x")[0], 200)  # it goes to the first, as long as both are idle
        pid = a.broker
        os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        status, headers, answer = gateway.post("/tokenize", content="x")
        took = time.monotonic() - begun
        again = gateway.post("/tokenize", content="x")[0]
        go_on(pid)
        self.assertEqual((status, headers["Retry-After"], again), (503, "1", 200), answer)
        self.assertLess(took, 10)


if __name__ == "__main__":
    main()
