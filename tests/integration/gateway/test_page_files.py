#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files of the page, and the state of the pool that it shows."""

import pathlib
import re
import time

from pool import WAIT, Base, Gateway, main, until

TABLES = pathlib.Path(__file__).resolve().parents[3] / "client/python/src/quern/_tables.py"


class ThePage(Base):
    def files(self):
        """Paths of what the page consists of: what it names, and what those name."""
        found, names = [], ["/"]
        while names:
            path = names.pop()
            found.append(path)
            text = self.gateway.ask("GET", path)[2]
            named = re.findall(r'(?:src|href)="(page/[^"]+)"', text) + re.findall(r'from "\./([^"]+)"', text)
            names += {f"/page/{name.removeprefix('page/')}" for name in named} - {*found, *names}
        return found

    def test_every_file_of_it_is_there_and_is_not_sent_twice(self):
        types = {"/": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
                 ".svg": "image/svg+xml"}
        paths = self.files()
        self.assertGreater(len(paths), 8)
        for path in paths:
            status, headers, text = self.gateway.ask("GET", path)
            self.assertEqual((status, headers["Content-Type"]), (200, types[path if path == "/" else path[path.rindex("."):]]))
            self.assertEqual(headers["Cache-Control"], "no-cache")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertRegex(headers["ETag"], r'^"[0-9a-f]{16}"$')
            head = self.gateway.ask("HEAD", path)
            self.assertEqual((head[0], head[1]["Content-Length"], head[2]), (200, str(len(text.encode())), ""))
            self.assertEqual(head[1]["ETag"], headers["ETag"])
            again = self.gateway.ask("GET", path, headers={"If-None-Match": f'"other", W/{headers["ETag"]}'})
            self.assertEqual((again[0], again[1]["ETag"], again[2]), (304, headers["ETag"], ""))
            self.assertEqual(self.gateway.ask("GET", path, headers={"If-None-Match": '"other"'})[2], text)

    def test_a_connection_goes_on_behind_what_was_not_sent_twice(self):
        etag = self.gateway.ask("GET", "/")[1]["ETag"]
        connection = self.gateway.connect()
        for _ in range(3):
            connection.request("GET", "/", headers={"If-None-Match": etag})
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.read()), (304, b""))
        connection.close()

    def test_it_may_run_nothing_but_its_own_files(self):
        for path in self.files():
            policy = dict(part.strip().split(" ", 1) for part in
                          self.gateway.ask("GET", path)[1]["Content-Security-Policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertEqual({policy[kind] for kind in ("script-src", "style-src", "connect-src", "img-src")}, {"'self'"})
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            self.assertEqual(policy["frame-ancestors"], "'none'")
        page = self.gateway.ask("GET", "/")[2]
        self.assertNotRegex(page, r"<script(?![^>]*\bsrc=)|\son\w+=|style=")
        self.assertNotRegex(page, r'(?:src|href)="(?:[a-z]+:|/)')

    def test_its_settings_have_the_bounds_of_the_protocol(self):
        fields = {}
        for name, more in re.findall(r'Field\("(\w+)", (.*?)help=', TABLES.read_text()):
            numbers = dict(re.findall(r"(low|high|initial)=([-\d.]+)", more))
            # The first that has the name is that of generate.
            fields.setdefault(name, (numbers.get("low", "0"), numbers.get("high"), numbers.get("initial", "0")))
        rows = re.findall(r'name: "(\w+)", .*?least: ([-\d.]+), most: ([-\d.]+),.*? initial: "([-\d.]+)"',
                          self.gateway.ask("GET", "/page/settings.js")[2])
        self.assertGreater(len(rows), 7)
        for name, least, most, initial in rows:
            if name in ("max_tokens", "top_logprobs"):  # the gateway's own
                continue
            with self.subTest(name):
                self.assertEqual(tuple(map(float, (least, most, initial))), tuple(map(float, fields[name])))

    def test_nothing_else_is_there(self):
        for path in ("/page/", "/page/none.js", "/page/../main.c", "/page/page.css/", "/page", "/index.html"):
            status, headers, answer = self.gateway.ask("GET", path)
            self.assertEqual((status, answer["error"]["code"]), (404, "not_found"), path)
        status, headers, _ = self.gateway.ask("POST", "/", "x")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))

    def test_the_status_is_what_the_command_says(self):
        self.gateway.post("/v1/completions", prompt="a", max_tokens=5)
        self.nothing_runs()

        def steady(status):
            """The command is a client more while it asks; and what a process holds may change whenever it does anything."""
            return {**status, "sessions": 0, "workers": [{**worker, "memory_resident": 0, "memory_resident_peak": 0}
                                                              for worker in status["workers"]]}

        def same():
            told, said = self.gateway.ask("GET", "/status")[2], self.status()
            self.assertLess(abs(told.pop("time_ms") / 1000 - time.time()), WAIT)
            self.assertEqual((told.keys(), told["workers"][0].keys()), (said.keys(), said["workers"][0].keys()))
            return said["tokens"] >= 5 and steady(told) == steady(said)
        until(same, "both say the same")

    def test_there_is_no_status_of_a_pool_that_is_gone(self):
        folder = self.folder / "lonely"
        folder.mkdir()
        lonely = Gateway(folder, str(folder / "nowhere"))
        self.addCleanup(lonely.end)
        status, headers, answer = lonely.ask("GET", "/status")
        self.assertEqual((status, headers["Retry-After"], answer["error"]["code"]), (503, "1", "unavailable"))
        self.assertEqual(lonely.ask("GET", "/")[0], 200)


if __name__ == "__main__":
    main()
