#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The log of requests."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from pool import BUILD, WAIT, Base, long_request, main, until


class RequestLog(Base):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="quern-gw-"))
        cls.file = cls.place / "requests.log"
        # Nobody is cut off for reading late: who goes away is seen to.
        cls.options = ("--request-log", str(cls.file), *Base.options)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.place, ignore_errors=True)

    def lines(self, file=None):
        return [json.loads(line) for line in (file or self.file).read_text().splitlines()]

    def lines_since_first(self):
        """Behind that of the question whether there is a worker, which may come late."""
        lines = self.lines()
        while lines and lines[0]["path"] == "/v1/models":
            del lines[0]
        return lines

    def metric(self, name):
        text = self.gateway.ask("GET", "/metrics")[2]
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    def reopen(self):
        said = self.gateway.log().count("reopened")
        self.gateway.process.send_signal(signal.SIGHUP)
        until(lambda: self.gateway.log().count("reopened") > said, "the log is opened anew")

    def test_1_each_request_has_a_line_with_its_phases(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        self.file.write_text("")
        body = {"prompt": "a secret", "max_tokens": 5, "n": 2}
        self.gateway.ask("POST", "/v1/completions", body, {"traceparent": trace})
        self.gateway.ask("POST", "/v1/completions", {"prompt": 1}, {"traceparent": "00-0-0-00"})
        self.gateway.stream("/v1/completions", prompt="b", max_tokens=3)
        self.gateway.ask("GET", "/v1/models")
        self.gateway.ask("GET", "/health")
        until(lambda: len(self.lines_since_first()) >= 4, "four lines")
        first, refused, stream, models = self.lines_since_first()
        self.assertEqual((first["traceparent"], first["status"], first["path"]), (trace, 200, "/v1/completions"))
        self.assertEqual((first["choices"], first["output_tokens"], first["finish"], first["stream"]),
                         (2, 10, "length", False))
        for phase in ("queue_ms", "prefill_ms", "prepare_ms", "wait_ms", "lookup_ms", "decode_ms", "first_token_ms"):
            self.assertGreaterEqual(first["duration_ms"] + 1, first[phase])
            self.assertGreaterEqual(first[phase], 0)
        self.assertGreater(first["first_token_ms"], 0)
        self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual((refused["status"], refused["traceparent"]), (400, None))
        self.assertNotIn("choices", refused)
        self.assertEqual((refused["code"], refused["param"]), (None, "prompt"))
        self.assertIn("prompt is a number", refused["message"])
        self.assertNotIn("message", first)
        self.assertEqual((stream["stream"], stream["output_tokens"]), (True, 3))
        self.assertEqual((models["method"], models["path"], models["client_gone"]), ("GET", "/v1/models", False))
        self.assertNotIn("secret", self.file.read_text())

    def test_2_a_client_that_goes_away_is_in_it(self):
        connection = self.gateway.raw(long_request(stream=True, max_tokens=900000))
        self.assertIn(b"200 OK", connection.recv(4096))
        connection.close()
        line = until(lambda: [line for line in self.lines() if line["client_gone"] and "choices" in line], "its line")[-1]
        self.assertEqual((line["finish"], line["status"]), (None, 200))

    def test_3_it_is_rotated_by_a_hangup(self):
        before, moved = len(self.lines()), self.file.with_suffix(".1")
        self.file.rename(moved)
        self.gateway.ask("GET", "/v1/models")
        until(lambda: len(self.lines(moved)) == before + 1, "the line is in the file that was moved")
        self.reopen()
        self.gateway.ask("GET", "/v1/models")
        until(lambda: len(self.lines()) == 1, "a line in the new file")
        self.assertEqual(len(self.lines(moved)), before + 1)

    def test_4_what_cannot_be_written_is_counted_and_said_once(self):
        self.file.unlink()
        self.file.symlink_to("/dev/full")
        self.reopen()
        for _ in range(3):
            self.assertEqual(self.gateway.ask("GET", "/v1/models")[0], 200)
        until(lambda: self.metric("quern_request_log_lost_total") == 3, "they are counted")
        self.assertEqual(self.gateway.log().count("requests are not logged"), 1)
        self.file.unlink()
        self.reopen()
        self.gateway.ask("GET", "/v1/models")
        self.gateway.says("are logged again; 3 are missing")
        self.file.unlink()
        self.file.mkdir()  # now it cannot be opened: the old one is written on
        written = self.metric("quern_request_log_lines_total")
        self.gateway.process.send_signal(signal.SIGHUP)
        self.gateway.says("requests are still written to the old file")
        self.gateway.ask("GET", "/v1/models")
        until(lambda: self.metric("quern_request_log_lines_total") == written + 1, "it is written")

    def test_5_a_file_that_cannot_be_opened_ends_the_start(self):
        said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--request-log", "/nowhere/x"],
                              capture_output=True, text=True, timeout=WAIT)
        self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1))
        self.assertIn("/nowhere/x", said.stderr)
        with tempfile.TemporaryDirectory(prefix="quern-gw-") as folder:
            os.mkfifo(folder + "/pipe")  # that nobody reads
            said = subprocess.run([str(BUILD / "quern-gateway"), "--listen", "127.0.0.1:0", "--request-log", folder + "/pipe"],
                                  capture_output=True, text=True, timeout=WAIT)
            self.assertEqual(said.returncode, 1)
            self.assertIn(folder + "/pipe", said.stderr)


if __name__ == "__main__":
    main()
