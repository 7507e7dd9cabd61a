#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Embeddings by HTTP, in the forms of OpenAI's and Ollama's clients."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from pool import BUILD, WAIT, Base, Process, go_on, main, read_all, until

POOLED = pathlib.Path(__file__).parents[2] / "conformance/models/folder-qwen3-last-F32"  # of which the last state counts


class Embeddings(Base):
    def embed(self, given, **fields):
        status, _, answer = self.gateway.post("/v1/embeddings", input=given, **fields)
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["object"], [each["index"] for each in answer["data"]]),
                         ("list", list(range(len(answer["data"])))))
        self.assertTrue(all(each["object"] == "embedding" for each in answer["data"]))
        return [each["embedding"] for each in answer["data"]], answer

    def test_one_and_several_texts_and_ids_are_answered_in_order(self):
        texts = ["Hello", "A cat sat on the mat.", "größe 🌾"]
        (alone,), _ = self.embed(texts[1])
        vectors, answer = self.embed(texts)
        self.assertEqual(vectors[1], alone)
        self.assertEqual(len({tuple(each) for each in vectors}), 3)
        for each in vectors:
            self.assertAlmostEqual(sum(number * number for number in each), 1, places=5)
        ids = [self.gateway.post("/tokenize", content=text)[2]["tokens"] for text in texts]
        self.assertEqual(self.embed(ids)[0], vectors)
        self.assertEqual(self.embed(ids[0])[0], vectors[:1])
        self.assertEqual(answer["usage"], {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))})
        name = self.gateway.ask("GET", "/v1/models")[2]["data"][0]["id"]
        self.assertEqual(answer["model"], name)
        self.assertEqual(self.embed(texts, model=name, user="me")[0], vectors)

    def test_they_are_those_of_the_command(self):
        (vector,), answer = self.embed("Hello there")
        said = json.loads(subprocess.run([str(BUILD / "quern"), "embed", "--connect", self.rundir, "--json", "Hello there"],
                                         capture_output=True, timeout=WAIT, check=True).stdout)
        self.assertEqual(said, {"embedding": vector, "prompt_tokens": answer["usage"]["prompt_tokens"]})

    def test_base64_has_the_same_floats(self):
        plain, _ = self.embed(["a", "b"], encoding_format="float")
        coded, _ = self.embed(["a", "b"], encoding_format="base64")
        for numbers, text in zip(plain, coded, strict=True):
            data = base64.b64decode(text, validate=True)
            self.assertEqual(data, struct.pack(f"<{len(numbers)}f", *numbers))

    def test_dimensions_are_those_of_the_model_or_refused(self):
        n = self.status()["workers"][0]["embedding"]
        (vector,), _ = self.embed("a", dimensions=n)
        self.assertEqual(len(vector), n)
        status, _, answer = self.gateway.post("/v1/embeddings", input="a", dimensions=n // 2)
        self.assertEqual((status, answer["error"]["param"]), (400, "dimensions"))
        self.assertIn(f"have {n} numbers", answer["error"]["message"])

    def test_more_inputs_than_run_at_once_all_come(self):
        inputs = [[5 + i % 300, 7, 310 + i // 300] for i in range(1000)]
        vectors, answer = self.embed(inputs)
        self.assertEqual((len(vectors), answer["usage"]["prompt_tokens"]), (1000, 3000))
        self.assertEqual(len({tuple(each) for each in vectors}), 1000)
        self.assertEqual(self.embed(inputs[777])[0][0], vectors[777])

    def test_what_is_wrong_is_named(self):
        for param, fields in (("input", {}), ("input", {"input": ""}), ("input", {"input": []}), ("input", {"input": 5}),
                              ("input[1]", {"input": ["a", ""]}), ("input[1]", {"input": ["a", 5]}),
                              ("input[1]", {"input": ["a", []]}), ("input[0][1]", {"input": [[1, -1]]}),
                              ("input[1]", {"input": [1, "a"]}), ("input", {"input": ["a"] * 2049}),
                              ("encoding_format", {"input": "a", "encoding_format": "hex"}),
                              ("dimensions", {"input": "a", "dimensions": 0}), ("odd", {"input": "a", "odd": 1})):
            status, _, answer = self.gateway.post("/v1/embeddings", **fields)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
        # Only the worker can tell; and one that is wrong fails all.
        status, _, answer = self.gateway.post("/v1/embeddings", input=[[5]] * 40 + [[2**31 - 1]] + [[5]] * 40)
        self.assertEqual(status, 400, answer)
        self.assertIn("2147483647", answer["error"]["message"])
        self.assertEqual(self.gateway.post("/v1/embeddings", input="a", model="none")[0], 404)
        self.nothing_runs()

    def test_ollamas_clients_are_served(self):
        vectors, answer = self.embed(["Hello", "there"])
        status, _, said = self.gateway.post("/api/embed", model=answer["model"] + ":latest", input=["Hello", "there"],
                                            keep_alive="5m", options={"num_ctx": 4096, "stop": ["x"]})
        self.assertEqual((status, said["embeddings"], said["model"]), (200, vectors, answer["model"]))
        self.assertEqual(said["prompt_eval_count"], answer["usage"]["prompt_tokens"])
        self.assertGreaterEqual(said["total_duration"], 0)
        self.assertEqual(self.gateway.post("/api/embed", input="Hello")[2]["embeddings"], vectors[:1])
        self.assertEqual(self.gateway.post("/api/embed", input="Hello", truncate=True)[2]["embeddings"], vectors[:1])
        self.assertIsInstance(self.gateway.post("/api/embed", input="a", truncate=1)[2]["error"], str)
        self.assertEqual(self.gateway.post("/api/embeddings", model=answer["model"], prompt="Hello", keep_alive="5m")[2],
                         {"embedding": vectors[0]})
        for wrong in ({"prompt": ["Hello"]}, {"prompt": ""}, {}, {"input": "Hello"}):
            self.assertEqual(self.gateway.post("/api/embeddings", **wrong)[0], 400, wrong)

    def counted(self, name):
        return self.gateway.metrics()[name]

    def test_long_answers_are_written_in_parts(self):
        inputs = [[5 + i % 300, 7] for i in range(100)]
        for path, fields in (("/v1/embeddings", {}), ("/v1/embeddings", {"encoding_format": "base64"}), ("/api/embed", {})):
            status, headers, answer = self.gateway.post(path, input=inputs, **fields)
            self.assertEqual((status, headers["Transfer-Encoding"], headers["Content-Type"]),
                             (200, "chunked", "application/json"))
            self.assertEqual(len(answer["data" if "data" in answer else "embeddings"]), 100)

    def test_what_failed_is_counted_too(self):
        before = self.gateway.metrics()
        self.assertEqual(self.gateway.post("/v1/embeddings", input=[[5, 6, 7], [2**31 - 1]])[0], 400)
        self.nothing_runs()
        until(lambda: self.counted("quern_queue_seconds_count") == before["quern_queue_seconds_count"] + 1, "it is counted")
        self.assertGreaterEqual(self.counted("quern_prompt_tokens_total"), before["quern_prompt_tokens_total"])

    def test_a_client_that_goes_away_ends_them(self):
        worker = self.status()["workers"][0]["pid"]
        admitted, abandoned = self.status()["admitted"], self.counted("quern_abandoned_total")
        over = self.counted("quern_queue_seconds_count")
        body = json.dumps({"input": ["x"] * 100})
        os.kill(worker, signal.SIGSTOP)  # so that none ends by itself
        try:
            connection = self.gateway.raw(f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
                                          f"\r\n\r\n{body}".encode())
            until(lambda: self.at_work() >= 16, "some wait or run")
            connection.close()
            until(lambda: self.counted("quern_abandoned_total") == abandoned + 1, "the gateway has seen it")
            until(lambda: self.counted("quern_queue_seconds_count") == over + 1, "the last of those that were sent has ended")
        finally:
            go_on(worker)
        # Those that wait in the gateway are not sent: they would end too, one after another.
        self.assertLessEqual(self.status()["admitted"] - admitted, 32)

    def test_a_worker_that_is_killed_takes_none_along(self):
        inputs = [[5 + i, 6] for i in range(60)]
        before, _ = self.embed(inputs)
        worker = self.status()["workers"][0]["pid"]
        body = json.dumps({"input": inputs})
        os.kill(worker, signal.SIGSTOP)
        connection = self.gateway.raw(f"POST /v1/embeddings HTTP/1.0\r\nContent-Length: "
                                      f"{len(body)}\r\n\r\n{body}".encode())
        until(lambda: self.status()["running"] >= 1, "the worker has some")
        os.kill(worker, signal.SIGKILL)
        head, _, said = read_all(connection).partition(b"\r\n\r\n")
        self.assertIn(b"200 OK", head)
        self.assertEqual([each["embedding"] for each in json.loads(said)["data"]], before)


class Unread(Base):
    """An answer of 8 MB, more than sockets hold, made of as many bytes as may wait to be read: 2048 vectors of 256."""
    ADA, BOB = "sk-0123456789abcdef", "sk-fedcba9876543210"

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {cls.ADA} requests=1\nbob {cls.BOB}\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file), "--streams-mb", "2")
        super().setUpClass()
        shutil.rmtree(file.parent)

    def embed(self, key, given):
        return self.gateway.ask("POST", "/v1/embeddings", {"input": given}, {"Authorization": f"Bearer {key}"})

    def unread(self):
        body = json.dumps({"input": [[5]] * 2048})
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(WAIT)
        connection.connect((self.gateway.host, self.gateway.port))
        connection.sendall(f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "
                           f"{self.ADA}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.assertIn(b"200 OK", connection.recv(15))
        return connection

    def test_what_is_not_read_counts_until_it_is(self):
        for leave in (socket.socket.close, read_all):
            connection = self.unread()
            status, headers, answer = self.embed(self.ADA, "a")
            self.assertEqual((status, headers["Retry-After"]), (429, "1"), answer)
            self.assertIn("this key", answer["error"]["message"])
            status, headers, answer = self.embed(self.BOB, "a")
            self.assertEqual((status, headers["Retry-After"]), (429, "1"), answer)
            self.assertIn("waiting for clients to read it", answer["error"]["message"])
            self.assertEqual(self.gateway.ask("GET", "/health")[0], 200)
            leave(connection)
            until(lambda: self.embed(self.ADA, "a")[0] == 200, "both have room again")
        status, _, answer = self.embed(self.BOB, [[5]] * 2048)
        self.assertEqual((status, len(answer["data"])), (200, 2048))


class Pooled(Base):
    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", str(POOLED), "--device", "cpu", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def test_an_embedding_is_what_the_model_says(self):
        prompts = json.loads(POOLED.with_name(POOLED.name + ".case.json").read_text())["prompts"]
        expected = struct.iter_unpack("<32f", POOLED.with_name(POOLED.name + ".embeddings.f32").read_bytes())
        answer = self.gateway.post("/v1/embeddings", input=prompts)[2]
        for each, vector in zip(answer["data"], expected, strict=True):
            self.assertLess(sum((a - b) ** 2 for a, b in zip(each["embedding"], vector, strict=True)), 1e-5)


if __name__ == "__main__":
    main()
