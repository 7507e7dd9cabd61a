#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one key has sent is in the prefix cache for it alone, for its group, or for all where that is asked for."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

from pool import BUILD, MODEL, WAIT, Base, Gateway, Process, free_ports, main, until

KEYS = {name: f"sk-0123456789abcde-{name}" for name in ("ada", "bob", "cy", "di")}
PROMPT = 400  # ids, of which all but the last are found again
FOUND = 399
STORED = 384  # the store has whole blocks: 12 of 32


class Salts(Base):
    number = 0
    more = ()

    @classmethod
    def setUpClass(cls):
        cls.secrets = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        file = cls.secrets / "keys"
        file.write_text(f"ada {KEYS['ada']}\nbob {KEYS['bob']}\ncy {KEYS['cy']} group=team\ndi {KEYS['di']} group=team\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file), *cls.more)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.secrets)

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "4096", "--workers", "2",
                             "--rundir", cls.rundir, *cls.more)
        cls.broker.says("ready:")

    def setUp(self):
        until(lambda: [worker["state"] for worker in self.status()["workers"]] == ["ready"] * 2, "both workers are ready")

    def fresh(self):
        """A prompt that nobody has sent."""
        Salts.number += 1
        return [300 + (Salts.number * 7919 + i * i) % 200 for i in range(PROMPT)]

    def ask(self, key, path="/v1/completions", **body):
        return self.gateway.ask("POST", path, {**({} if path.startswith("/api/") else {"max_tokens": 1}), **body}, {"Authorization": f"Bearer {KEYS[key]}"})

    def cached(self, key, prompt, **more):
        status, _, answer = self.ask(key, prompt=prompt, **more)
        self.assertEqual(status, 200, answer)
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


class Apart(Salts):
    def test_a_key_finds_its_own_prompts_only(self):
        prompt = self.fresh()
        self.assertEqual([self.cached(key, prompt) for key in ("ada", "ada", "bob", "cy", "ada", "bob")],
                         [0, FOUND, 0, 0, FOUND, FOUND])

    def test_keys_of_a_group_find_each_others(self):
        prompt = self.fresh()
        self.assertEqual([self.cached(key, prompt) for key in ("cy", "di", "ada")], [0, FOUND, 0])

    def test_a_salt_divides_what_a_key_has_and_opens_nothing_else(self):
        prompt = self.fresh()
        self.assertEqual([self.cached("ada", prompt, cache_salt=salt) for salt in ("x", "y", "x")], [0, 0, FOUND])
        self.assertEqual(self.cached("ada", prompt), 0)
        self.assertEqual(self.cached("bob", prompt, cache_salt="x"), 0)

    def test_without_the_cache_nothing_is_read_or_written(self):
        prompt = self.fresh()
        self.assertEqual([self.cached("ada", prompt, cache_prompt=cache) for cache in (False, False, True, False, True)],
                         [0, 0, 0, 0, FOUND])

    def test_every_family_takes_them(self):
        """A conversation, asked of the others first with the cache left out and then with a salt of its own."""
        text = "What is a quern? " * 40
        for path, found in (("/v1/chat/completions", lambda answer: answer["usage"]["prompt_tokens_details"]["cached_tokens"]),
                            ("/v1/messages", lambda answer: answer["usage"]["cache_read_input_tokens"])):
            body = {"messages": [{"role": "user", "content": f"{path} {text}"}]}
            cached = [found(self.ask("ada", path, **body, **more)[2])
                      for more in ({"cache_prompt": False}, {"cache_salt": "a"}, {"cache_salt": "b"}, {"cache_salt": "a"})]
            self.assertEqual(cached[:3], [0, 0, 0], path)
            self.assertGreater(cached[3], 100, path)
        for path, what in (("/api/generate", {"prompt": text}), ("/api/chat", {"messages": body["messages"]})):
            status, _, answer = self.ask("ada", path, stream=False, cache_salt="a", cache_prompt=False,
                                         options={"num_predict": 1}, **what)
            self.assertEqual(status, 200, answer)

    def test_a_salt_that_makes_no_sense_is_named(self):
        for salt in ("s" * 65, "s" * (1 << 20), "two\nlines", "", 7, ["x"], {"x": 1}, True):
            for path in ("/v1/completions", "/v1/chat/completions", "/v1/messages", "/api/generate"):
                body = {"prompt": "a"} if path in ("/v1/completions", "/api/generate") else \
                    {"messages": [{"role": "user", "content": "a"}]}
                status, _, answer = self.ask("ada", path, cache_salt=salt, **body)
                self.assertEqual(status, 400, (path, str(salt)[:20]))
                self.assertIn("cache_salt", json.dumps(answer))
                self.assertLess(len(json.dumps(answer)), 1000)
        self.assertEqual(self.ask("ada", prompt="a", cache_salt="s" * 64)[0], 200)
        self.assertEqual(self.ask("ada", prompt="a", cache_salt="größe 7")[0], 200)
        self.assertEqual(self.ask("ada", prompt="a", cache_prompt="no")[0], 400)

    def test_a_request_that_moves_keeps_its_salt(self):
        """Its worker is killed; where it goes on it is still read for its own key alone."""
        prompt, answers = self.fresh(), []
        body = {"prompt": prompt, "max_tokens": 3000, "seed": 1, "temperature": 1}
        asking = threading.Thread(target=lambda: answers.append(self.ask("ada", **body)))
        alone = self.ask("ada", **body, cache_prompt=False)[2]["choices"][0]["text"]
        asking.start()
        def busy():
            return [worker for worker in self.status()["workers"] if worker["active"]]
        workers = until(lambda: busy() or answers, "a worker has it")
        if not answers:
            os.kill(workers[0]["pid"], signal.SIGKILL)
        asking.join(WAIT)
        self.assertEqual(answers[0][2]["choices"][0]["text"], alone)
        self.assertEqual(self.cached("bob", prompt), 0)
        self.assertEqual(self.cached("ada", prompt), FOUND)


class Documents(Salts):
    """Long prompts about which several questions are asked, one after the other, by a pool with little else to do."""

    def test_a_further_question_goes_where_the_document_was_read(self):
        """However much that worker has done meanwhile, and the other one nothing."""
        document = [300 + i * i % 200 for i in range(3000)]
        found = [self.cached("ada", document + [500 + question] * 40, max_tokens=1000) for question in range(150)]
        self.assertEqual(found[0], 0)
        self.assertGreaterEqual(min(found[1:]), 2944)


class Shared(Salts):
    more = ("--share-prefixes",)

    def test_keys_find_each_others_prompts_but_for_salts(self):
        prompt = self.fresh()
        self.assertEqual([self.cached(key, prompt) for key in ("ada", "bob", "cy")], [0, FOUND, FOUND])
        self.assertEqual([self.cached("ada", prompt, cache_salt="x"), self.cached("bob", prompt, cache_salt="x")], [0, FOUND])


class Network(Salts):
    """Clients of the pool itself, over TCP with keys of their own."""

    @classmethod
    def start_broker(cls):
        certificates, cls.port = cls.secrets / "certificates", free_ports()
        for more in ((), ("--client", "alice"), ("--client", "bob")):
            subprocess.run([str(BUILD / "quern"), "keys", *more, str(certificates)], check=True, capture_output=True)
        clients = cls.secrets / "clients"
        clients.mkdir(mode=0o700)
        for name in ("alice.cert", "bob.cert"):
            shutil.copy(certificates / name, clients)
        cls.certificates = certificates
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "4096", "--workers", "2",
                             "--rundir", cls.rundir, "--tcp", f"127.0.0.1:{cls.port}", "--curve-key",
                             str(certificates / "quern.cert_secret"), "--client-keys", str(clients))
        cls.broker.says("ready:")

    def run_as(self, client, prompt):
        where = ("--connect", self.rundir) if client is None else \
            ("--connect", f"tcp://127.0.0.1:{self.port}", "--server-key", str(self.certificates / "quern.cert"),
             "--client-key", str(self.certificates / f"{client}.cert_secret"))
        said = subprocess.run([str(BUILD / "quern"), "run", "--json", "--raw", "-n", "1", *where, prompt],
                              capture_output=True, timeout=WAIT, check=True, stdin=subprocess.DEVNULL)
        return json.loads(said.stdout)["usage"]["cached_tokens"] > 0

    def test_a_client_with_a_key_finds_its_own_prompts_only(self):
        prompt = "Nobody else has asked this. " * 40
        self.assertEqual([self.run_as(client, prompt) for client in ("alice", "alice", "bob", None, "bob", None)],
                         [False, True, False, False, True, True])


class SharedStore(Salts):
    """Both workers have what one has read, and each key still only its own."""

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "cpu", "--ctx", "2048", "--workers", "2",
                             "--threads", "1", "--prefix-store", "64", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def test_a_key_finds_in_the_store_its_own_prompts_only(self):
        prompt = self.fresh()
        self.assertEqual([self.cached("ada", prompt), self.cached("ada", prompt)], [0, FOUND])
        for worker in self.status()["workers"]:  # what is found now was in the store
            os.kill(worker["pid"], signal.SIGKILL)
        until(lambda: sum(worker["restarts"] for worker in self.status()["workers"]) == 2, "both were started again")
        self.setUp()
        self.assertEqual([self.cached("bob", prompt), self.cached("ada", prompt)], [0, STORED])


if __name__ == "__main__":
    main()
