# SPDX-License-Identifier: MIT
"""quern-gateway before a real pool, for the tests beside it, which are called with BUILD_FOLDER MODEL.

The pool has the null device: its ids come fast, and the same for the same request."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD, MODEL = pathlib.Path(sys.argv[1]), sys.argv[2]
WAIT = 200  # seconds until something that must happen counts as missing
SCALED = "QUERN_TEST_SCALE" in os.environ  # a sanitizer makes everything slow


def until(condition, what):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {WAIT} s")


def free_ports():
    """A port that is free, and so is the next one, on which the streams are."""
    while True:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                next_one.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):  # it is taken; there is no port 65536
                continue


def children_of(parent, name):
    """The pids of the children of that name."""
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
        except OSError:
            continue  # gone
        called, rest = rest.rsplit(") ", 1)
        if called == name and int(rest.split()[1]) == parent:
            found.add(int(pid))
    return found


def child_of(parent, name):
    """The pid of a child of that name."""
    for pid in children_of(parent, name):
        return pid
    raise AssertionError(f"{parent} has no child {name}")


def go_on(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass  # it stood still for too long, and was replaced


class Process:
    """A program with its stderr in a file."""

    within = ()  # a command that starts it

    def __init__(self, folder, name, *arguments):
        self.log_path = folder / f"{pathlib.Path(name).name}.log"
        with open(self.log_path, "ab") as log:
            self.begun = log.tell()  # behind what an earlier one of this name has said
            self.process = subprocess.Popen([*self.within, str(BUILD / name), *arguments], stderr=log, stdout=log,
                                            preexec_fn=os.setpgrp)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def says(self, text):
        def look():
            if text in self.log_path.read_bytes()[self.begun:].decode(errors="replace"):
                return True
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}:\n{self.log()}")
        until(look, f"'{text}' in the log")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            return self.process.wait(WAIT)
        finally:
            self.process.kill()


class Gateway(Process):
    command = ("quern-gateway",)
    address = "127.0.0.1:0"
    unasked = 1024

    def __init__(self, folder, rundir, *arguments):
        # Where a test does not say, answers of a device that never stops would go to the end of a million tokens.
        limit = () if "--max-tokens" in arguments else ("--max-tokens", str(self.unasked))
        super().__init__(folder, *self.command, *self.endpoint(rundir), "--listen", self.address, *limit, *arguments)
        self.tls = None
        scheme = "http://"
        if "--tls-cert" in arguments:
            scheme = "https://"
            self.tls = ssl.create_default_context(cafile=arguments[arguments.index("--tls-cert") + 1])
        self.says("ready: " + scheme)
        self.host, port = self.log().rsplit("ready: " + scheme, 1)[1].split()[0].rsplit(":", 1)
        self.port = int(port)

    def endpoint(self, rundir):
        return "--connect", rundir

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=WAIT, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=WAIT)

    def ask(self, method, path, body=None, headers={}):
        """The status, the headers and the JSON (or text) of an answer."""
        connection = self.connect()
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.getheader("Content-Type", "") == "application/json" and text:
            return answer.status, answer.headers, json.loads(text)
        return answer.status, answer.headers, text.decode()

    def post(self, path, **body):
        return self.ask("POST", path, body)

    def metrics(self):
        """Each line of /metrics: its name, with labels, and its number."""
        lines = [line for line in self.ask("GET", "/metrics")[2].splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def stream(self, path, **body):
        """The events of a stream, parsed; the last must be [DONE]."""
        status, headers, text = self.ask("POST", path, {"stream": True, **body})
        assert status == 200 and headers["Content-Type"] == "text/event-stream", text
        events = text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""], events[-2:]
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]

    def raw(self, data):
        """A socket on which these bytes were sent."""
        connection = socket.create_connection((self.host, self.port), timeout=WAIT)
        connection.sendall(data)
        return connection

    def ready(self):
        until(lambda: self.ask("GET", "/health")[0] == 200, "the gateway is ready")
        until(self.has_worker, "a worker is ready")

    def has_worker(self):
        status, _, models = self.ask("GET", "/v1/models")
        return status == 401 or any(model["ready"] for model in models.get("data", []))


def read_all(connection):
    data = b""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # it may be tiny until here
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    connection.close()
    return data


def long_request(**more):
    body = json.dumps({"prompt": "x", "max_tokens": 300000, **more})
    return f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Base(unittest.TestCase):
    options = ("--stream-kb", "1000000", "--streams-mb", "1000")

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.rundir = str(cls.folder / "run")
        cls.start_broker()
        cls.gateway = Gateway(cls.folder, cls.rundir, *cls.options)
        cls.gateway.ready()

    @classmethod
    def start_broker(cls):
        cls.broker = Process(cls.folder, "quern-broker", MODEL, "--device", "null", "--ctx", "1000000", "--frame-us", "0",
                             "--rundir", cls.rundir)
        cls.broker.says("ready:")

    @classmethod
    def tearDownClass(cls):
        status = cls.gateway.end()
        cls.broker.end()
        log = cls.gateway.log()
        shutil.rmtree(cls.folder, ignore_errors=True)
        assert status == 0, f"the gateway ended with {status}:\n{log}"

    def status(self):
        said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--connect", self.rundir],
                              capture_output=True, timeout=WAIT, check=True)
        return json.loads(said.stdout)

    def at_work(self):
        status = self.status()
        return status["running"] + status["queued"]

    def nothing_runs(self):
        until(lambda: self.at_work() == 0, "every request has ended")


def with_tokens(model, **ids):
    """A GGUF file with keys in front of its others; their bytes keep its tensors where they are aligned."""
    data = pathlib.Path(model).read_bytes()
    magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", data)
    more = b""
    for name, value in ids.items():
        key = f"tokenizer.ggml.{name}_token_id".encode()
        more += struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, value)
    key = b"test.filler"
    room = -(len(more) + 8 + len(key) + 4 + 8) % 32
    more += struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, room) + b"x" * room
    return struct.pack("<4sIQQ", magic, version, tensors, pairs + len(ids) + 1) + more + data[24:]


def make_certificate(cert, key):
    """Writes a certificate of 127.0.0.1 for itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                    "-out", cert], check=True, capture_output=True)
    os.chmod(key, 0o600)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
