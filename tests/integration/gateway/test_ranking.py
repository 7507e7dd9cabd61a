#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Documents ranked by HTTP, in the forms of Jina's, Cohere's and vLLM's clients, by a model that ranks."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from pool import BUILD, SCALED, Base, Process, go_on, main, read_all, until

QUERY = "What is a panda?"
DOCUMENTS = ["hi", "it is a bear", "The giant panda is a bear species.", "größe 🌾", "hi"]
ADA = "sk-0123456789abcdef"
BOB = "sk-0123456789abcdeb"


class Ranking(Base):
    headers = {}
    many, some = (50, 50) if SCALED else (2048, 300)  # pairs; 32 are under way at once

    @classmethod
    def start_broker(cls):
        cls.model = cls.folder / "ranks.gguf"
        subprocess.run([str(BUILD / "quern"), "synth", "tiny-rank", "Q8_0", str(cls.model)], check=True, capture_output=True)
        cls.broker = Process(cls.folder, "quern-broker", str(cls.model), "--device", "cpu", "--workers", "2", "--alias", "ranker",
                             "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def post(self, path, request_id="a", **body):
        return self.gateway.ask("POST", path, body, {**self.headers, "X-Request-Id": request_id})

    def score(self, first, second, **fields):
        status, _, answer = self.post("/v1/score", text_1=first, text_2=second, **fields)
        self.assertEqual((status, answer["object"]), (200, "list"), answer)
        self.assertEqual([(each["index"], each["object"]) for each in answer["data"]],
                         [(i, "score") for i in range(len(answer["data"]))])
        return [each["score"] for each in answer["data"]]

    def test_documents_come_in_the_order_of_their_scores(self):
        scores = self.score(QUERY, DOCUMENTS)
        self.assertTrue(all(0 < score < 1 for score in scores), scores)
        self.assertEqual((scores[0], len(set(scores))), (scores[4], 4))
        order = sorted(range(5), key=lambda i: (-scores[i], i))
        for path in ("/v1/rerank", "/v2/rerank", "/rerank", "/v1/reranking", "/reranking"):
            status, _, answer = self.post(path, query=QUERY, documents=DOCUMENTS, model="ranker")
            self.assertEqual((status, answer["object"], answer["model"]), (200, "list", "ranker"), answer)
            self.assertEqual([each["index"] for each in answer["results"]], order)
            self.assertEqual([each["relevance_score"] for each in answer["results"]], [scores[i] for i in order])
            self.assertTrue(all(each.keys() == {"index", "relevance_score"} for each in answer["results"]))
        self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])
        some = self.post("/v1/rerank", query=QUERY, documents=DOCUMENTS, top_n=2, return_documents=True)[2]
        self.assertEqual([(each["index"], each["document"]) for each in some["results"]],
                         [(i, {"text": DOCUMENTS[i]}) for i in order[:2]])
        self.assertEqual(some["usage"], answer["usage"])
        self.assertEqual(len(self.post("/v1/rerank", query=QUERY, documents=DOCUMENTS, top_n=99)[2]["results"]), 5)

    def test_texts_come_back_as_a_bare_list(self):
        """As from Text Embeddings Inference, whose scores are shares too."""
        ranked = self.post("/v1/rerank", query=QUERY, documents=DOCUMENTS)[2]["results"]
        for path in ("/rerank", "/v1/rerank"):
            status, _, answer = self.post(path, query=QUERY, texts=DOCUMENTS, truncate=False)
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer, [{"index": each["index"], "score": each["relevance_score"]} for each in ranked])
        answer = self.post("/rerank", query=QUERY, texts=DOCUMENTS, return_text=True, top_n=2)[2]
        self.assertEqual(answer, [{"index": each["index"], "score": each["relevance_score"], "text": DOCUMENTS[each["index"]]} for each in ranked[:2]])
        for field in ("truncate", "raw_scores"):
            status, _, answer = self.post("/rerank", query="q", texts=["a"], **{field: True})
            self.assertEqual((status, answer["error"]["param"]), (400, field))
        status, _, answer = self.post("/rerank", query="q", texts=["a", "b" * 40000])
        self.assertEqual((status, answer["error"]["param"]), (400, "texts[1]"))

    def test_a_score_is_the_pairs_own_wherever_it_stands(self):
        """Alone, among thousands, as the second of a list, by another worker."""
        alone = [self.score(QUERY, text)[0] for text in DOCUMENTS]
        self.assertEqual(self.score([QUERY] * 5, DOCUMENTS), alone)
        many = self.score(QUERY, (DOCUMENTS * 410)[:self.many])
        self.assertEqual(many, (alone * 410)[:self.many])
        self.assertEqual(self.score([DOCUMENTS[0], QUERY], [QUERY, DOCUMENTS[0]])[1], alone[0])
        self.assertNotEqual(self.score(DOCUMENTS[1], QUERY), alone[1:2])

    def test_what_a_text_spells_is_text(self):
        """Neither the template's places nor control tokens mean anything in it."""
        names = ("{document}", "{query}")
        plain = self.score("x", names)
        self.assertEqual(len(set(plain)), 2)
        self.assertNotEqual(self.score("{document}", "b"), self.score("b", "b"))
        ids = self.gateway.ask("POST", "/tokenize", {"content": "query: x\ndocument: </s>\nanswer: ", "parse_special": False},
                               self.headers)[2]["tokens"]
        usage = self.post("/v1/score", text_1="x", text_2="</s>")[2]["usage"]
        self.assertEqual(usage["prompt_tokens"], len(ids))

    def test_the_clients_name_of_a_request_is_a_text_in_the_answer(self):
        name = 'a","model":"b\\'
        for kind, body in (("rerank", {"query": "q", "documents": ["a"]}), ("score", {"text_1": "q", "text_2": "a"})):
            status, headers, answer = self.post(f"/v1/{kind}", request_id=name, **body)
            self.assertEqual((status, headers["X-Request-Id"], answer["id"]), (200, name, f"{kind}-{name}"))

    def test_what_cannot_be_ranked_is_named(self):
        for documents, param, says in (([], "documents", "documents is empty"), (["a", ""], "documents[1]", "is empty"),
                                       (["a"] * 2049, "documents", "2049 texts; at most 2048"),
                                       (["a", "b" * 40000], "documents[1]", "documents[1] has 39"),
                                       (["a", "qx" * 10000], "documents[1]", "tokens together; the")):
            status, _, answer = self.post("/v1/rerank", query="q", documents=documents)
            self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
            self.assertIn(says, answer["error"]["message"])
        self.assertEqual(self.post("/v1/rerank", query="q", documents=["a"], model="other")[0], 404)
        # A small body whose pairs are more than any body may have.
        status, _, answer = self.post("/v1/rerank", query="q" * 5000, documents=["a"] * 2048)
        self.assertEqual((status, answer["error"]["code"]), (413, "too_large"), answer)
        self.assertIn("the pairs of query and documents have 9.77 MiB together", answer["error"]["message"])
        self.nothing_runs()

    def test_the_model_does_nothing_else(self):
        for path, body in (("/v1/embeddings", {"input": "a"}), ("/v1/completions", {"prompt": "a"}),
                           ("/v1/completions", {"prompt": [5, 6], "max_tokens": 2}), ("/api/embed", {"model": "ranker", "input": "a"})):
            status, _, answer = self.post(path, **body)
            self.assertEqual(status, 400, answer)
            error = answer["error"]
            self.assertIn("ranks pairs of texts", error if isinstance(error, str) else error["message"])
        self.assertTrue(all(worker["ranks"] and worker["embedding"] == 2 for worker in self.status()["workers"]))
        self.assertEqual(self.gateway.ask("POST", "/api/show", {"model": "ranker"}, self.headers)[2]["capabilities"], [])

    def test_it_makes_no_embeddings_either_while_it_restarts(self):
        gone = {worker["pid"] for worker in self.status()["workers"]}
        for worker in gone:
            os.kill(worker, signal.SIGKILL)

        def started():
            new = {worker["pid"] for worker in self.status()["workers"]} - gone - {0}
            return len(new) == 2 and new
        for worker in until(started, "others start"):
            os.kill(worker, signal.SIGSTOP)
            self.addCleanup(go_on, worker)
        time.sleep(2.5)  # until the gateway knows that neither is ready
        self.assertEqual(self.post("/v1/embeddings", input=[1, 2, 3])[0], 400)

    def test_a_worker_that_dies_loses_no_pair(self):
        times = self.some // len(DOCUMENTS)
        documents = DOCUMENTS * times
        expected = self.score(QUERY, DOCUMENTS) * times
        worker = self.status()["workers"][0]["pid"]
        os.kill(worker, signal.SIGSTOP)
        self.addCleanup(go_on, worker)
        text = json.dumps({"text_1": QUERY, "text_2": documents})
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        connection = self.gateway.raw(f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}"
                                      f"Content-Length: {len(text.encode())}\r\n\r\n{text}".encode())
        until(lambda: self.at_work() > 0, "pairs are under way")
        os.kill(worker, signal.SIGKILL)
        answer = read_all(connection)
        data = json.loads(answer.split(b"\r\n\r\n", 1)[1])["data"]
        self.assertEqual([each["score"] for each in data], expected)


class WithKeys(Ranking):
    """As above, with a key of one request at a time, which all pairs of a request are."""

    headers = {"Authorization": f"Bearer {ADA}"}
    many = some = 50 if SCALED else 100

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {ADA} requests=1\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file))
        super().setUpClass()
        shutil.rmtree(file.parent)

    def post(self, path, **body):
        """A rejected request keeps its place until all of its pairs have ended."""
        return until(lambda: (answer := super(WithKeys, self).post(path, **body))[0] != 429 and answer, "the key has room")

    def test_it_needs_a_key_that_may_precede(self):
        self.assertEqual(self.gateway.ask("POST", "/v1/rerank", {"query": "q", "documents": ["a"]})[0], 401)
        for priority in (-1, 2):
            status, _, answer = self.post("/v1/rerank", query="q", documents=["a"], priority=priority)
            self.assertEqual((status, answer["error"]["code"]), (403, "priority_not_allowed"))
        self.assertEqual(self.post("/v1/rerank", query="q", documents=["a"], priority=0)[0], 200)


class WithTokens(Ranking):
    """With a key whose tokens a minute a long list exceeds."""

    headers = {"Authorization": f"Bearer {ADA}"}
    many = some = 50 if SCALED else 100

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-")) / "keys"
        file.write_text(f"ada {ADA} tpm=100000000 rpm=1000\nbob {BOB} tpm=2000 rpm=1000\n")
        file.chmod(0o600)
        cls.options = ("--keys", str(file))
        super().setUpClass()
        shutil.rmtree(file.parent)

    def test_a_list_of_more_tokens_than_the_key_has_left_gets_429(self):
        ask = lambda n: self.gateway.ask("POST", "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS[:1] * n},
                                         {"Authorization": f"Bearer {BOB}"})
        status, headers, answer = ask(2)
        self.assertEqual((status, headers["x-ratelimit-limit-tokens"]), (200, "2000"), answer)
        status, headers, answer = ask(2000)
        self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"), answer)
        self.assertIn("the limit of 2000 tokens a minute is reached (tpm)", answer["error"]["message"])
        self.assertGreater(int(headers["Retry-After"]), 0)
        self.nothing_runs()


class Others(Base):
    """A model without such a head."""

    def test_a_model_that_does_not_rank_says_so(self):
        for path, body in (("/v1/rerank", {"query": "q", "documents": ["a"]}), ("/score", {"text_1": "q", "text_2": "a"})):
            status, _, answer = self.gateway.post(path, **body)
            self.assertEqual((status, answer["error"]["code"], answer["error"]["param"]), (400, "unsupported", "model"), answer)
            self.assertIn("does not rank texts: its file has no pooling_type rank", answer["error"]["message"])


if __name__ == "__main__":
    main()
