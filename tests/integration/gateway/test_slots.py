#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/slots says what is in the workers' slots, as llama-server does, and nothing that clients wrote."""

import json
import os
import pathlib
import shutil
import signal
import tempfile

from pool import MODEL, Base, Process, go_on, main, until

ADA = "sk-0123456789abcdef"
SLOTS = 2


class Slots(Base):
    headers = {}
    told = True  # what is in the slots

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "1000000", "--workers", "2",
                             "--slots", str(SLOTS), "--journal", "2048", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def begin(self, name, **body):
        text = json.dumps({"prompt": "secret words", "max_tokens": 900000, **body})
        head = "".join(f"{key}: {value}\r\n" for key, value in {"X-Request-Id": name, **self.headers}.items())
        return self.gateway.raw(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}"
                                f"Content-Length: {len(text)}\r\n\r\n{text}".encode())

    def slots(self, query=""):
        return self.gateway.ask("GET", "/slots" + query, headers=self.headers)

    def busy(self):
        return [slot for slot in self.slots()[2] if slot["is_processing"]]

    def test_each_slot_and_the_request_in_it(self):
        until(lambda: len(self.slots()[2]) == 2 * SLOTS, "both workers serve")
        free = self.slots()[2]
        self.assertEqual([slot["id"] for slot in free], [0, 1, 2, 3])
        self.assertEqual([(slot["id_task"], slot["is_processing"]) for slot in free], 4 * [(-1, False)])
        self.assertEqual({slot["worker"] for slot in free}, {worker["name"] for worker in self.status()["workers"]})
        self.assertEqual({slot["n_ctx"] for slot in free}, {1000000})
        self.assertEqual(self.slots("?fail_on_no_slot=1")[0], 200)

        running = self.begin("first")
        until(lambda: len(self.busy()) == 1, "one slot is in use")
        if self.told:
            until(lambda: [slot["state"] for slot in self.busy()] == ["running"], "it is told")
            slot, = self.busy()
            self.assertTrue(0 <= slot["id_task"] < 2**48, slot)
            self.assertTrue(slot["next_token"][0]["has_next_token"], slot)
            until(lambda: self.busy()[0]["next_token"][0]["n_decoded"] > 0, "tokens are counted")
            self.assertEqual(self.busy()[0]["id_task"], slot["id_task"])
        running.close()
        until(lambda: not self.busy(), "the slot is free")

    def test_all_in_use_is_503_for_those_who_ask_so(self):
        # Workers that stand still decode nothing to its end; what they have beyond their slots is not shown.
        workers = [worker["pid"] for worker in self.status()["workers"]]
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
            self.addCleanup(go_on, worker)
        flood = [self.begin(f"name-{i}") for i in range(2 * SLOTS + 2)]
        until(lambda: len(self.busy()) == 2 * SLOTS, "all slots are in use")
        slots = self.slots()[2]
        self.assertEqual((len(slots), len({slot["id_task"] for slot in slots})), (2 * SLOTS, 2 * SLOTS if self.told else 1))
        status, headers, answer = self.slots("?fail_on_no_slot=1")
        self.assertEqual((status, answer["error"]["code"]), (503, "no_slot_available"))
        self.assertEqual(headers["Retry-After"], "1")
        self.assertIn("all 4 slots are in use", answer["error"]["message"])
        self.assertEqual(self.slots("?fail_on_no_slot=0")[0], 200)
        self.assertNotIn("secret", json.dumps(slots))
        self.requests_are_as_they_should(slots)
        for worker in workers:
            go_on(worker)
        for connection in flood:
            connection.close()
        self.nothing_runs()

    def requests_are_as_they_should(self, slots):
        self.assertTrue(all(slot["request_id"].startswith("name-") for slot in slots), slots)


class WithKeys(Slots):
    """Nobody learns what others have running."""

    headers = {"Authorization": f"Bearer {ADA}"}
    told = False

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {ADA}\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file))
        super().setUpClass()
        shutil.rmtree(file.parent)

    def requests_are_as_they_should(self, slots):
        for slot in slots:
            self.assertEqual(set(slot), {"id", "id_task", "n_ctx", "is_processing", "worker"})
            self.assertEqual((slot["id_task"], slot["is_processing"]), (-1, True))

    def test_it_needs_a_key(self):
        self.assertEqual(self.gateway.ask("GET", "/slots")[0], 401)


if __name__ == "__main__":
    main()
