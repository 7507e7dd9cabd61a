#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gateway as a process: started by a pool, watched, drained."""

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
import unittest
import urllib.error
import urllib.request

from pool import BUILD, MODEL, WAIT, Base, Process, child_of, go_on, main, make_certificate, until


class Served(unittest.TestCase):
    """quern serve --http."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        self.rundir = str(self.folder / "run")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def serve(self, *arguments):
        return Process(self.folder, "quern-broker", MODEL, "--device", "null", "--rundir", self.rundir, *arguments)

    def addresses(self, pool):
        return [line.rsplit("ready: ", 1)[1] for line in pool.log().splitlines() if "ready: http" in line]

    def get(self, url):
        try:
            with urllib.request.urlopen(url + "/health", timeout=WAIT) as answer:
                return answer.status
        except (urllib.error.URLError, OSError):
            return 0

    def test_it_is_started_watched_and_ended(self):
        pool = self.serve("--http", "127.0.0.1:0")
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        until(lambda: self.get(url) == 200, "it serves")
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGKILL)
        url = until(lambda: self.addresses(pool)[1:], "another one listens")[0]
        until(lambda: self.get(url) == 200, "it serves again")
        self.assertEqual(pool.end(), 0, pool.log())
        self.assertEqual(self.get(url), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
    def test_its_options_reach_it(self):
        cert, key, log = (str(self.folder / name) for name in ("cert.pem", "key.pem", "requests"))
        make_certificate(cert, key)
        pool = self.serve("--http", "127.0.0.1:0", "--http-tls-cert", cert, "--http-tls-key", key, "--http-log", log,
                          "--http-hosts", "chat.example")
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        self.assertTrue(url.startswith("https://"), url)
        context = ssl.create_default_context(cafile=cert)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(url + "/missing", timeout=WAIT, context=context)
        missing.exception.close()
        for host, status in (("chat.example", 200), ("evil.example", 403)):
            asked = urllib.request.Request(url + "/health/live", headers={"Host": host})
            try:
                got = urllib.request.urlopen(asked, timeout=WAIT, context=context).status
            except urllib.error.HTTPError as error:
                got = error.code
                error.close()
            self.assertEqual(got, status, host)
        line = json.loads(until(lambda: pathlib.Path(log).read_text(), "a line of the log").splitlines()[0])
        self.assertEqual((line["path"], line["status"]), ("/missing", 404))
        os.rename(log, log + ".1")  # with the lines of the two that followed
        os.kill(child_of(pool.process.pid, "quern-gateway"), signal.SIGHUP)
        until(lambda: os.path.exists(log), "the log is opened anew")
        self.assertEqual(pool.end(), 0, pool.log())
        for wrong in (("--http-log", log), ("--http", "127.0.0.1:0", "--http-tls-cert", cert)):
            self.assertEqual(self.serve(*wrong).process.wait(WAIT), 2)

    def ask(self, url, path, body=None, headers={}):
        """The status, the headers and the JSON of an answer."""
        request = urllib.request.Request(url + path, body and json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=WAIT) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, json.load(refused)

    def test_its_bounds_and_origins_reach_it_from_line_and_file(self):
        conf = self.folder / "conf"
        conf.write_text("http-body-kb = 1\nhttp-max-tokens = 3\nhttp-cors = https://a.example\n")
        pool = self.serve("--http", "127.0.0.1:0", "--config", str(conf), "--http-max-tokens", "5")
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        until(lambda: self.get(url) == 200, "it serves")
        status, headers, answer = self.ask(url, "/v1/completions", {"prompt": "x"}, {"Origin": "https://a.example"})
        self.assertEqual((status, answer["usage"]["completion_tokens"]), (200, 5), answer)
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://a.example")
        self.assertEqual(self.ask(url, "/v1/completions", {"prompt": 2000 * "x"})[0], 413)
        self.assertEqual(pool.end(), 0, pool.log())

    def test_other_machines_come_in_without_keys_only_where_that_is_said(self):
        pool = self.serve("--http", "0.0.0.0:0")
        self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("--http-open", pool.log())
        pool = self.serve("--http", "0.0.0.0:0", "--http-open")
        pool.says("ready: http://0.0.0.0:")
        self.assertEqual(pool.end(), 0, pool.log())
        for wrong in (("--http-open",), ("--http-cors", "*"), ("--http-max-tokens", "1"), ("--http-body-kb", "1")):
            pool = self.serve(*wrong)
            self.assertEqual(pool.process.wait(WAIT), 2)
            self.assertIn(f"{wrong[0][2:]}: requires http", pool.log()[pool.begun:])

    def test_a_model_answers_to_its_other_names_everywhere(self):
        names = ["gpt-4o", "größe 2"]
        pool = self.serve("--http", "127.0.0.1:0", "--workers", "2", "--alias", names[0], "--alias", names[1])
        url = until(lambda: self.addresses(pool), "the gateway listens")[0]
        until(lambda: self.get(url) == 200, "it serves")
        until(lambda: all(worker["state"] == "ready" for worker in self.ask(url, "/status")[2]["workers"]), "both are ready")

        def check():
            listed = [model["id"] for model in self.ask(url, "/v1/models")[2]["data"]]
            self.assertEqual(listed[1:], names)
            self.assertEqual([model["name"] for model in self.ask(url, "/api/tags")[2]["models"]], listed)
            self.assertEqual([worker["aliases"] for worker in self.ask(url, "/status")[2]["workers"]], [names, names])
            self.assertEqual(self.ask(url, "/v1/models/gpt-4o")[2]["id"], "gpt-4o")
            for name in listed:
                status, _, answer = self.ask(url, "/v1/completions", {"prompt": "x", "model": name, "max_tokens": 2})
                self.assertEqual((status, answer.get("model")), (200, name), answer)
            body = {"model": names[0] + ":latest", "prompt": "x", "raw": True, "stream": False,
                    "options": {"num_predict": 2}}
            self.assertEqual(self.ask(url, "/api/generate", body)[2].get("model"), names[0])
            status, _, answer = self.ask(url, "/v1/completions", {"prompt": "x", "model": "gpt-4"})
            self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))

        check()
        said = subprocess.run([BUILD / "quern", "status", "--connect", self.rundir], capture_output=True, text=True,
                              timeout=WAIT)
        self.assertIn("\nQuern demo answers to gpt-4o, größe 2 too\n", said.stdout)
        subprocess.run([BUILD / "quern", "reload", "--rundir", self.rundir], check=True, timeout=WAIT,
                       capture_output=True)
        check()
        self.assertEqual(pool.end(), 0, pool.log())

    def test_a_reload_makes_no_name_mean_two_models(self):
        model = self.folder / "model.gguf"
        shutil.copy(BUILD / "tests/integration/tiny.gguf", model)
        pool = Process(self.folder, "quern-broker", str(model), "--rundir", self.rundir, "--workers", "2", "--alias",
                       "Quern demo")
        pool.says("ready: ipc:")
        shutil.copy(MODEL, self.folder / "other")
        os.rename(self.folder / "other", model)
        said = subprocess.run([BUILD / "quern", "reload", "--rundir", self.rundir], timeout=WAIT, text=True,
                              capture_output=True)
        self.assertEqual(said.returncode, 1)
        self.assertIn('model "Quern demo": this name is an alias of another model of this pool, "tiny', said.stderr)
        answer = subprocess.run([BUILD / "quern", "run", "x", "--raw", "-n", "1", "--connect", self.rundir],
                                timeout=WAIT, capture_output=True)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(pool.end(), 0, pool.log())

    def test_without_a_model_the_demo_model_is_served_and_by_http(self):
        """On port 8080, unless that is taken, by the test or by somebody else: the answer comes in either case."""
        for taken in (True, False):
            with socket.socket() as ours:
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    ours.bind(("127.0.0.1", 8080))
                    ours.listen()
                except OSError:
                    taken = True
                if not taken:
                    ours.close()
                pool = Process(self.folder, "quern", "serve", "--rundir", self.rundir, "--workers", "1")
                pool.says("gateway info ready: http")
                url, said = self.addresses(pool)[-1], pool.log()[pool.begun:]
                self.assertRegex(said, "no MODEL given: serving .*quern-demo-Q8_0.gguf\n")
                self.assertIn(f"chat with it at {url}/\n", said)
                if taken:
                    self.assertIn(f"127.0.0.1:8080 is taken: HTTP is on {url[7:]} instead\n", said)
                until(lambda: self.get(url) == 200, "it serves")
                body = {"messages": [{"role": "user", "content": "What is 2 plus 3?"}], "seed": 1}
                answer = self.ask(url, "/v1/chat/completions", body)[2]
                self.assertEqual(answer["model"], "Quern demo")
                self.assertIn("5", answer["choices"][0]["message"]["content"])
                self.assertEqual(pool.end(), 0, pool.log())

    def test_a_file_of_settings_has_to_name_its_model(self):
        conf = self.folder / "conf"
        conf.write_text("workers = 1\n")
        pool = Process(self.folder, "quern", "serve", "--rundir", self.rundir, "--config", str(conf))
        self.assertEqual(pool.process.wait(WAIT), 2)
        self.assertIn(f"no MODEL given, and {conf} names none\n", pool.log())

    def test_what_cannot_be_served_ends_the_pool_with_the_reason(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            pool = self.serve("--http", f"127.0.0.1:{taken.getsockname()[1]}")
            self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("Address already in use", pool.log())
        pool = self.serve("--http", "0.0.0.0:0")
        self.assertEqual(pool.process.wait(WAIT), 1)
        self.assertIn("give a key file", pool.log())
        keys = self.folder / "short-keys"
        keys.write_text("alice short\n")
        keys.chmod(0o600)
        pool = self.serve("--http", "127.0.0.1:0", "--http-keys", str(keys))
        self.assertEqual(pool.process.wait(WAIT), 1)
        said = pool.log()[pool.begun:]
        self.assertIn("quern-gateway: " + str(keys) + ":1: the key of alice has 5 bytes", said)
        self.assertIn("supervisor error the gateway ended with status 1", said)
        self.assertNotIn("broker error", said)

    def test_a_build_without_gateway_says_so(self):
        alone = self.folder / "quern-broker"
        shutil.copy(BUILD / "quern-broker", alone)
        said = subprocess.run([alone, MODEL, "--rundir", self.rundir, "--http", "127.0.0.1:0"], capture_output=True,
                              text=True, timeout=WAIT)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertIn("libmicrohttpd", said.stderr)


class Measured(unittest.TestCase):
    def test_the_benchmark_tells_what_came(self):
        said = subprocess.run([BUILD / "quern", "bench", "gateway", "-s", "3", "-n", "40", "-i", "200", "-p", "5", "-r", "1", "-J"],
                              capture_output=True, text=True, timeout=3 * WAIT)
        self.assertEqual(said.returncode, 0, said.stderr)
        told = json.loads(said.stdout)
        self.assertEqual((told["bench"], told["streams"], told["tokens"], told["idle_streams"]), ("gateway", 3, 40, 200))
        for kind in ("", "single_"):
            self.assertGreater(told[kind + "tokens_per_s"], 0)
            self.assertTrue(0 < told[kind + "events_per_s"] <= told[kind + "tokens_per_s"], told)
        self.assertTrue(0 < told["first_http_us"] <= told["first_http_p99_us"], told)
        self.assertTrue(0 < told["memory_before"] < told["memory"], told)
        alone = subprocess.run([BUILD / "quern", "bench", "gateway", "-s", "0"], capture_output=True, text=True, timeout=WAIT)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--streams", alone.stderr)


class Draining(Base):
    def test_a_signal_lets_streams_end_and_takes_nothing_new(self):
        events = []
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)  # it is not to end before the gateway was told
        reader = threading.Thread(target=lambda: events.extend(
            self.gateway.stream("/v1/completions", prompt="a", max_tokens=20000)))
        reader.start()
        try:
            until(lambda: self.status()["running"] == 1, "the stream runs")
            self.gateway.process.send_signal(signal.SIGTERM)
            self.gateway.says("no new requests")
        finally:
            go_on(worker)
        with self.assertRaises(OSError):
            self.gateway.ask("GET", "/health")
        reader.join(WAIT)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.gateway.process.wait(WAIT), 0)


class Stopped(unittest.TestCase):
    """While clients ask on and on, with bodies that are read beside the loop."""
    BODY = json.dumps({"prompt": "a" * 14500, "max_tokens": 1})
    REQUEST = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}".encode()

    def ask_on(self, port):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
                while True:
                    connection.sendall(self.REQUEST)
                    if not connection.recv(65536):
                        return
        except OSError:
            pass  # it is gone

    def stop(self, folder, signals):
        gateway = Process(folder, "quern-gateway", "--listen", "127.0.0.1:0", "--connect", str(folder / "none"))
        gateway.says("ready: http://")
        port = int(gateway.log()[gateway.begun:].split("ready: http://127.0.0.1:")[1].split()[0])
        clients = [threading.Thread(target=self.ask_on, args=(port,)) for _ in range(24)]
        for client in clients:
            client.start()
        for number in signals:
            gateway.process.send_signal(number)
        self.assertEqual(gateway.process.wait(WAIT), 0, gateway.log())
        for client in clients:
            client.join(WAIT)

    def test_one_signal_or_two_end_it(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        for _ in range(8):
            self.stop(folder, [signal.SIGTERM])
            self.stop(folder, [signal.SIGTERM, signal.SIGINT])
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
