#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/fleet/quern-fleet-etcd before a server that answers as etcd does, also when it has lost something."""

import base64
import http.server
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile
import threading
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "contrib/fleet/quern-fleet-etcd"
LOADER = importlib.machinery.SourceFileLoader("quern_fleet_etcd", str(SCRIPT))
SPEC = importlib.util.spec_from_loader("quern_fleet_etcd", LOADER)
fleet = importlib.util.module_from_spec(SPEC)
sys.dont_write_bytecode = True
LOADER.exec_module(fleet)

PREFIX = "/quern/fleet/"
TEXT = 'connect = "tcp://10.77.0.1:7700"\nserver-key = "k"\n'


def coded(text):
    return base64.b64encode(text.encode()).decode()


class FakeEtcd(http.server.ThreadingHTTPServer):
    """Keys and leases; `asked` has each question. A body in `instead` of a path is the answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys, self.leases, self.asked, self.instead = {}, set(), [], {}
        self.revision, self.events = 7, []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_):
        pass  # a watch that was left

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path, body):
        self.asked.append((path, body))
        if path in self.instead:
            return self.instead[path]
        header = {"revision": str(self.revision)}
        if path == "lease/grant":
            self.leases.add(str(900 + len(self.leases)))
            return 200, {"ID": max(self.leases), "TTL": body["TTL"]}
        if path == "lease/keepalive":
            alive = {"TTL": "10"} if body["ID"] in self.leases else {}
            return 200, {"result": {"ID": body["ID"], **alive}}
        if path == "lease/revoke":
            self.leases.discard(body["ID"])
            return 200, {"header": header}
        if path == "kv/put":
            if body["lease"] not in self.leases:
                return 404, {"error": "etcdserver: requested lease not found", "code": 5}
            self.keys[base64.b64decode(body["key"]).decode()] = base64.b64decode(body["value"]).decode()
            return 200, {"header": header}
        kvs = [{"key": coded(key), "value": coded(value)} for key, value in self.keys.items()]
        return 200, {"header": header, **({"kvs": kvs, "count": str(len(kvs))} if kvs else {})}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        path = self.path.removeprefix("/v3/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if path == "watch" and path not in self.server.instead:
            self.server.asked.append((path, body))
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for said in ({"created": True}, *self.server.events):
                line = json.dumps({"result": said}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
            return
        status, said = self.server.answer(path, body)
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = FakeEtcd()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.said = []
        fleet.say = self.said.append
        fleet.PATIENCE = 5
        self.etcd = fleet.Etcd([self.server.url], None)

    def paths(self):
        return [path for path, _ in self.server.asked]


class Register(Base):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "host1"
        self.registrar = fleet.Registrar(self.etcd, PREFIX, self.file, "host1", 10)

    def test_a_pool_is_registered_while_its_file_is_there(self):
        self.registrar.turn()
        self.assertEqual(self.server.asked, [])
        self.file.write_text(TEXT)
        self.registrar.turn()
        self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})
        self.registrar.turn()
        self.assertEqual(self.paths(), ["lease/grant", "kv/put", "lease/keepalive"])
        self.file.write_text(TEXT.replace("7700", "7800"))
        self.registrar.turn()
        self.assertIn("7800", self.server.keys[PREFIX + "host1"])
        self.file.unlink()
        self.registrar.turn()
        self.assertEqual(self.server.leases, set())

    def test_a_lease_without_a_ttl_is_gone_and_made_anew(self):
        self.file.write_text(TEXT)
        self.registrar.turn()
        self.server.leases.clear()
        self.server.keys.clear()
        self.registrar.turn()
        self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})
        self.assertEqual(sum("was lost" in text for text in self.said), 1)

    def test_a_lease_that_ends_before_the_put_is_made_anew(self):
        self.file.write_text(TEXT)
        self.server.instead["kv/put"] = 404, {"error": "etcdserver: requested lease not found"}
        self.registrar.turn()
        del self.server.instead["kv/put"]
        self.registrar.turn()
        self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})

    def test_an_endpoint_that_fails_is_left_and_what_etcd_has_stays(self):
        self.file.write_text(TEXT)
        self.etcd.endpoints = ["http://127.0.0.1:1", self.server.url]
        self.registrar.turn()
        self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})
        self.server.instead["lease/keepalive"] = 503, {"error": "etcdserver: no leader", "code": 14}
        for _ in range(3):
            with self.assertRaises(fleet.Unavailable):
                self.registrar.turn()
        self.assertEqual(sum("no endpoint answers" in text for text in self.said), 1)
        del self.server.instead["lease/keepalive"]
        self.registrar.turn()
        self.assertEqual(self.paths().count("lease/grant"), 1)

    def make_unreadable(self):
        self.file.unlink(missing_ok=True)
        self.file.mkdir()

    def test_a_file_that_cannot_be_read_is_not_one_that_is_gone(self):
        self.make_unreadable()
        self.registrar.turn()
        self.assertEqual(self.server.asked, [])
        self.file.rmdir()
        for spoil in (self.make_unreadable, lambda: self.file.write_bytes(b"\xff"), lambda: self.file.write_text("x" * 4097)):
            self.file.write_text(TEXT)
            self.registrar.turn()
            self.said.clear()
            spoil()
            self.registrar.turn()
            self.server.leases.clear()
            self.server.keys.clear()
            self.registrar.turn()
            self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})
            self.assertEqual(len(self.server.leases), 1)
            self.assertEqual(sum("stays as it is" in text for text in self.said), 1)
            if self.file.is_dir():
                self.file.rmdir()
        self.assertIn("more than 4096 bytes", self.said[0])
        self.file.write_text("x" * 4096)
        self.registrar.turn()
        self.assertEqual(len(self.server.keys[PREFIX + "host1"]), 4096)
        self.file.unlink()
        self.registrar.turn()
        self.assertEqual(self.server.leases, set())

    def test_an_odd_answer_changes_nothing(self):
        self.file.write_text(TEXT)
        for path, odd in (("lease/grant", {}), ("lease/grant", []), ("lease/keepalive", {"error": "no leader"}),
                          ("lease/keepalive", {"result": []}), ("lease/keepalive", {"result": {"TTL": "many"}})):
            self.server.instead[path] = 200, odd
            if path == "lease/grant":
                self.server.leases.clear()
            with self.assertRaises(fleet.Unavailable):
                self.registrar.turn()
            self.assertIn(f"{path}: an odd answer", self.said[-1])
            del self.server.instead[path]
            self.registrar.turn()
            self.assertEqual(self.server.keys, {PREFIX + "host1": TEXT})
        self.assertEqual(self.paths().count("lease/grant"), 4)  # two of them were answered


class Mirror(Base):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "fleet"
        self.mirror = fleet.Mirror(self.etcd, PREFIX, fleet.Folder(self.path))
        self.server.keys = {PREFIX + "a": TEXT, PREFIX + "b": TEXT + "#"}

    def files(self):
        return sorted(entry.name for entry in self.path.iterdir())

    def event(self, name, text=None):
        pair = {"key": coded(PREFIX + name), **({"value": coded(text)} if text is not None else {})}
        return {"events": [{"kv": pair, **({"type": "DELETE"} if text is None else {})}]}

    def test_the_folder_has_what_etcd_has(self):
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])
        self.assertEqual((self.path / "a").read_text(), TEXT)
        self.assertEqual((self.path / "a").stat().st_mode & 0o777, 0o644)
        del self.server.keys[PREFIX + "a"]
        self.mirror.round()
        self.assertEqual(self.files(), ["b"])

    def test_a_file_that_is_the_same_is_not_written_again(self):
        self.mirror.round()
        before = (self.path / "a").stat()
        self.mirror.round()
        self.assertEqual((self.path / "a").stat(), before)

    def test_it_follows_changes_behind_the_list(self):
        self.server.events = [self.event("c", TEXT), self.event("a")]
        self.mirror.round()
        self.assertEqual(self.files(), ["b", "c"])
        path, body = self.server.asked[-1]
        self.assertEqual((path, body["create_request"]["start_revision"]), ("watch", "8"))

    def test_a_list_is_linearizable_and_of_the_prefix_alone(self):
        self.mirror.round()
        path, body = self.server.asked[0]
        self.assertEqual(path, "kv/range")
        self.assertEqual(body, {"key": coded(PREFIX), "range_end": coded("/quern/fleet0")})

    def test_the_folder_is_never_emptied(self):
        self.mirror.round()
        self.server.keys = {}
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])
        self.server.events = [self.event("a"), self.event("b")]
        self.mirror.round()
        self.assertEqual(self.files(), ["b"])
        self.assertEqual(sum("has no members" in text for text in self.said), 1)

    def test_a_compacted_watch_leads_to_another_list(self):
        self.server.events = [{"canceled": True, "compact_revision": "11"}, self.event("a")]
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])
        self.server.events = []
        del self.server.keys[PREFIX + "a"]
        self.mirror.round()
        self.assertEqual(self.files(), ["b"])

    def test_a_watch_that_is_refused_is_said_once_and_another_endpoint_asked(self):
        self.etcd.endpoints = [self.server.url, self.server.url + "/"]
        self.server.instead["watch"] = 403, {"error": "permission denied"}
        self.mirror.round()
        self.assertEqual(self.etcd.at, 1)
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])
        self.assertEqual(sum("watch at" in text and "status 403" in text for text in self.said), 1)
        for _ in range(2):
            del self.server.instead["watch"]
            self.mirror.round()
            self.server.instead["watch"] = 403, {}
            self.mirror.round()
        self.assertEqual(sum("status 403" in text for text in self.said), 3)

    def test_there_are_no_more_members_than_a_gateway_takes(self):
        self.addCleanup(setattr, fleet, "MOST_MEMBERS", fleet.MOST_MEMBERS)
        fleet.MOST_MEMBERS = 3
        self.server.events = [self.event("d", TEXT), self.event("c", TEXT), self.event("a", TEXT + "new")]
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b", "d"])
        self.assertEqual((self.path / "a").read_text(), TEXT + "new")
        self.server.events = []
        self.server.keys.update({PREFIX + "d": TEXT, PREFIX + "c": TEXT})
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b", "c"])
        self.assertEqual(sum("more than 3 members" in text for text in self.said), 1)

    def test_an_etcd_that_fails_removes_nothing(self):
        self.mirror.round()
        for answer in ((503, {"error": "etcdserver: request timed out"}), (200, []), (200, {"header": {"revision": "9"}, "kvs": [{}]}),
                       (200, {})):
            self.server.instead["kv/range"] = answer
            with self.assertRaises(fleet.Unavailable):
                self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])

    def test_odd_keys_are_named_once_and_harm_nobody(self):
        self.server.keys.update({PREFIX + "../x": TEXT, PREFIX + ".x": TEXT, PREFIX + "x_secret": TEXT, PREFIX: TEXT,
                                 PREFIX + "long": "x" * 5000})
        self.mirror.round()
        self.mirror.round()
        self.assertEqual(self.files(), ["a", "b"])
        self.assertEqual(sum("no name of a member" in text for text in self.said), 4)
        self.assertEqual(sum("long: more than" in text for text in self.said), 1)


if __name__ == "__main__":
    unittest.main()
