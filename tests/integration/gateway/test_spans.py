#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Spans of requests, as a collector of OpenTelemetry gets them."""

import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from pool import BUILD, WAIT, Base, Gateway, main, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what is posted to it; answers with `status`, and `reply`; silent while `held` is set."""

    daemon_threads = True

    def __init__(self, port=0):
        self.posts, self.status, self.reply, self.headers, self.held = [], 200, b"{}", {}, threading.Event()
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self):
        """All that was taken: {service: [span, ...]}."""
        found = {}
        for post in list(self.posts):
            for part in post["body"]["resourceSpans"]:
                attributes = values(part["resource"])
                for scope in part["scopeSpans"]:
                    found.setdefault(attributes["service.name"], []).extend(scope["spans"])
        return found

    def of_request(self, request_id):
        """The spans of one request by their names, where there are any yet."""
        spans = self.spans()
        for span in spans.get("quern-gateway", []):
            if values(span)["quern.request_id"] == request_id:
                below = [part for service in ("quern-broker", "quern-worker") for part in spans.get(service, [])
                         if part["parentSpanId"] == span["spanId"]]
                return {"server": span, **{part["name"]: part for part in below}}
        return None

    def end(self):
        self.held.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        collector = self.server
        while collector.held.is_set() and collector.status == "silent":
            time.sleep(0.02)
        status = collector.status if isinstance(collector.status, int) else 200
        if status == 200:
            collector.posts.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)})
        self.send_response(status)
        for name, value in collector.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(collector.reply)))
        self.end_headers()
        self.wfile.write(collector.reply)

    def log_message(self, *_):
        pass


def values(of):
    """The attributes of a span or resource."""
    def value(tagged):
        (kind, inside), = tagged.items()
        if kind == "arrayValue":
            return [value(each) for each in inside["values"]]
        return int(inside) if kind == "intValue" else inside
    return {each["key"]: value(each["value"]) for each in of["attributes"]}


class Spans(Base):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        headers = cls.place / "headers"
        headers.write_text("# of the collector\napi-key: 1234\n")
        headers.chmod(0o600)
        cls.collector = Collector()
        cls.options = ("--otlp", cls.collector.url, "--otlp-headers", str(headers), *Base.options)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            cls.collector.end()
            shutil.rmtree(cls.place, ignore_errors=True)

    def setUp(self):
        self.collector.status, self.collector.reply, self.collector.headers = 200, b"{}", {}

    def ask(self, name, traceparent=None, **body):
        headers = {"x-request-id": name, **({"traceparent": traceparent} if traceparent else {})}
        return self.gateway.ask("POST", "/v1/completions", {"prompt": "a secret", "max_tokens": 5, **body}, headers)

    def of(self, name):
        return until(lambda: self.collector.of_request(name), f"spans of {name}")

    def test_1_a_request_is_told_part_by_part_in_the_clients_trace(self):
        before = time.time_ns()
        self.assertEqual(self.ask("one", f"00-{TRACE}-{PARENT}-01")[0], 200)
        spans = self.of("one")
        after = time.time_ns()
        self.assertEqual(set(spans), {"server", "queue", "prefill", "decode"})
        server = spans["server"]
        self.assertEqual((server["traceId"], server["parentSpanId"], server["kind"], server["name"]),
                         (TRACE, PARENT, 2, "POST /v1/completions"))
        self.assertEqual({span["traceId"] for span in spans.values()}, {TRACE})
        self.assertLess(before - 10**9, int(server["startTimeUnixNano"]))
        self.assertLess(int(server["endTimeUnixNano"]), after + 10**9)
        for span in spans.values():
            self.assertLessEqual(int(server["startTimeUnixNano"]), int(span["startTimeUnixNano"]))
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
            self.assertLessEqual(int(span["endTimeUnixNano"]), int(server["endTimeUnixNano"]))
        told = values(server)
        self.assertEqual((told["http.response.status_code"], told["gen_ai.usage.output_tokens"], told["quern.choices"],
                          told["gen_ai.response.finish_reasons"]), (200, 5, 1, ["length"]))
        post = self.collector.posts[-1]
        self.assertEqual((post["path"], post["headers"]["Content-Type"], post["headers"]["api-key"]),
                         ("/v1/traces", "application/json", "1234"))
        self.assertNotIn("secret", json.dumps(self.collector.posts))

    def test_2_streams_refusals_and_what_is_not_sampled(self):
        self.ask("stream", stream=True)
        self.ask("refused", temperature="hot")
        self.ask("unsampled", f"00-{TRACE}-{PARENT}-00")
        self.gateway.ask("GET", "/health")
        self.gateway.ask("GET", "/nowhere?secret", headers={"x-request-id": "nowhere"})
        self.assertTrue(values(self.of("stream")["server"])["quern.stream"])
        refused = self.of("refused")
        self.assertEqual(set(refused), {"server"})
        self.assertEqual(values(refused["server"])["http.response.status_code"], 400)
        self.assertNotIn("status", refused["server"])
        self.assertEqual(self.of("nowhere")["server"]["name"], "GET")
        names = [span["name"] for span in self.collector.spans()["quern-gateway"]]
        self.assertFalse([name for name in names if "health" in name or "nowhere" in name])
        self.assertIsNone(self.collector.of_request("unsampled"))

    def test_3_a_collector_that_is_busy_gets_them_again(self):
        self.collector.status, self.collector.headers = 503, {"Retry-After": "1"}
        self.ask("busy")
        self.gateway.says("status 503: the collector does not accept spans")
        self.assertEqual(self.ask("meanwhile")[0], 200)
        self.collector.status = 200
        self.of("busy")
        self.of("meanwhile")
        self.gateway.says("the collector accepts spans again")
        self.assertEqual(self.gateway.metrics()["quern_traced_requests_lost_total"], 0)

    def test_4_what_it_refuses_is_counted(self):
        self.collector.status = 400
        self.ask("lost")
        until(lambda: self.gateway.metrics()["quern_traced_requests_lost_total"] >= 1, "it is counted")
        self.collector.status = 200
        self.collector.reply = b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}'
        self.ask("part")
        self.of("part")
        self.gateway.says("2 spans were rejected: too old")
        self.collector.reply = b"\xff" * 3_000_000  # is neither read to its end nor parsed
        self.ask("noise")
        self.of("noise")
        self.assertGreater(self.gateway.metrics()["quern_traced_requests_total"], 0)

    def test_5_a_silent_collector_holds_nothing_up(self):
        silent = Collector()
        silent.status = "silent"
        silent.held.set()
        gateway = Gateway(self.folder, self.rundir, "--otlp", silent.url + "/v1/traces")
        try:
            gateway.ready()
            for _ in range(20):
                self.assertEqual(gateway.post("/v1/completions", prompt="b", max_tokens=2)[0], 200)
            began = time.monotonic()
            self.assertEqual(gateway.end(), 0)
            self.assertLess(time.monotonic() - began, WAIT / 4)
        finally:
            silent.end()

    def test_6_what_was_not_sent_yet_is_at_the_end(self):
        collector = Collector()
        gateway = Gateway(self.folder, self.rundir, "--otlp", collector.url)
        try:
            gateway.ready()
            gateway.ask("POST", "/v1/completions", {"prompt": "b", "max_tokens": 2}, {"x-request-id": "last"})
            self.assertEqual(gateway.end(), 0)
            self.assertIsNotNone(collector.of_request("last"))
        finally:
            collector.end()

    def test_7_more_than_it_keeps_are_lost_and_counted(self):
        with socket.socket() as closed:  # nobody listens there
            closed.bind(("127.0.0.1", 0))
            gateway = Gateway(self.folder, self.rundir, "--otlp", f"http://127.0.0.1:{closed.getsockname()[1]}")
            gateway.ready()
            connection = gateway.connect()
            for _ in range(2048 + 256 + 100):
                connection.request("GET", "/nowhere")
                connection.getresponse().read()
            until(lambda: gateway.metrics()["quern_traced_requests_lost_total"] >= 50, "they are counted")
            connection.close()
            own = gateway.log_path.read_bytes()[gateway.begun:]
            self.assertEqual(own.count(b"the collector does not accept spans"), 1)
            self.assertEqual(gateway.end(), 0)
            own = gateway.log_path.read_bytes()[gateway.begun:]
            self.assertRegex(own, rb"the collector did not accept the spans of \d+ requests")

    def test_8_what_cannot_work_ends_the_start(self):
        public = self.place / "public"
        public.write_text("api-key: 1234\n")
        public.chmod(0o644)
        for options, said in ((("--otlp", "nonsense"), "nonsense"), (("--otlp", "ftp://h"), "ftp://h"),
                              (("--otlp", "http://u:pass@h"), "credentials"),
                              (("--otlp", "http://h", "--otlp-headers", "/nowhere/x"), "/nowhere/x"),
                              (("--otlp", "http://h", "--otlp-headers", str(public)), str(public)),
                              (("--otlp-headers", str(public)), "requires --otlp")):
            for check in ((), ("--check",)):
                done = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--connect", self.rundir,
                                       *options, *check], capture_output=True, text=True, timeout=WAIT)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)
                self.assertNotIn("pass@", done.stderr)
                self.assertNotIn("1234", done.stderr)


    def test_9_a_library_that_cannot_be_loaded_ends_the_start(self):
        place = self.place / "libraries"
        place.mkdir()
        for name in ("libcurl-gnutls.so.4", "libcurl.so.4"):
            (place / name).touch()
        paths = f"{place}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        command = [str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--connect", self.rundir, "--check"]
        for more, status in (((), 0), (("--otlp", "http://h"), 1)):  # without spans nobody misses it
            done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=WAIT,
                                  env={**os.environ, "LD_LIBRARY_PATH": paths})
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, r"libcurl, which sends spans, cannot be loaded: .*libcurl\.so\.4: file too short")


# Without libcurl the gateway says so, and there is nothing to test.
def built_without():
    done = subprocess.run([str(BUILD / "quern-gateway"), "--check", "--listen", "127.0.0.1:0", "--otlp", "http://h"],
                          capture_output=True, text=True, timeout=WAIT)
    return "without libcurl" in done.stderr


if built_without():
    print("skipped: the gateway was built without libcurl")
    os._exit(77)
main()
