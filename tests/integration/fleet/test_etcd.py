#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/fleet/quern-fleet-etcd with three real nodes of etcd: the leader is killed, the quorum is lost, all are down.
Skipped where there is no etcd (Debian: etcd-server). usage: test_etcd.py [--down SECONDS]"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "contrib/fleet/quern-fleet-etcd"
WAIT = 200  # seconds until something that must happen counts as missing
TEXT = 'connect = "tcp://{}:7700"\nserver-key = "k"\n'


def until(condition, what):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {WAIT} s")


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Node:
    def __init__(self, folder, number, ports, peers):
        self.client, self.peer = (f"http://127.0.0.1:{port}" for port in ports)
        self.arguments = ["etcd", "--name", f"e{number}", "--data-dir", str(folder / f"e{number}"),
                          "--listen-client-urls", self.client, "--advertise-client-urls", self.client,
                          "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                          "--initial-cluster", ",".join(f"e{i}={peer}" for i, peer in enumerate(peers)),
                          "--initial-cluster-state", "new", "--logger", "zap", "--log-level", "error"]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def says(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        try:
            with urllib.request.urlopen(urllib.request.Request(self.client + path, data), timeout=2) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return {}

    def is_healthy(self):
        return self.says("/health").get("health") == "true"

    def leads(self):
        status = self.says("/v3/maintenance/status", {})
        return "leader" in status and status["leader"] == status["header"]["member_id"]


class Cluster(unittest.TestCase):
    down = 6  # seconds without any node, longer than a lease

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-etcd-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.programs = []
        ports = free_ports(6)
        peers = [f"http://127.0.0.1:{port}" for port in ports[1::2]]
        self.nodes = [Node(self.folder, i, ports[2 * i:2 * i + 2], peers) for i in range(3)]
        self.addCleanup(lambda: [node.kill() for node in self.nodes])
        until(lambda: all(node.is_healthy() for node in self.nodes), "the nodes are healthy")
        self.fleet = self.folder / "fleet"
        (self.folder / "here").mkdir()
        self.mirror = self.run_script("mirror", self.fleet)

    def run_script(self, what, where):
        endpoints = ",".join(node.client for node in self.nodes)
        with open(self.folder / "log", "ab") as log:
            program = subprocess.Popen([sys.executable, str(SCRIPT), what, "--etcd", endpoints, "--ttl", "5", str(where)],
                                       stderr=log)
        self.programs.append(program)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def pool(self, name):
        file = self.folder / "here" / name
        file.write_text(TEXT.format(name))
        return self.run_script("register", file)

    def members(self):
        return sorted(path.name for path in self.fleet.glob("[!.]*")) if self.fleet.exists() else []

    def log(self):
        return (self.folder / "log").read_text()

    def test_members_come_and_go_and_outlast_all_that_happens_to_etcd(self):
        self.pool("a")
        b = self.pool("b")
        until(lambda: self.members() == ["a", "b"], "both are members")
        self.assertEqual((self.fleet / "a").read_text(), TEXT.format("a"))

        leader = next(node for node in self.nodes if node.leads())
        leader.kill()
        self.pool("c")
        until(lambda: self.members() == ["a", "b", "c"], "a member comes while the leader is dead")

        others = [node for node in self.nodes if node is not leader]
        others[0].kill()  # no quorum
        until(lambda: "no endpoint answers" in self.log(), "somebody notices")
        others[1].kill()  # nobody at all
        end = time.monotonic() + self.down
        while time.monotonic() < end:
            self.assertEqual(self.members(), ["a", "b", "c"])
            for program in self.programs:
                self.assertIsNone(program.poll(), self.log())
            time.sleep(0.1)

        for node in self.nodes:
            if node.process.returncode is not None:
                node.start()
        until(lambda: any(node.is_healthy() for node in self.nodes), "etcd is back")
        (self.folder / "here" / "a").unlink()
        until(lambda: self.members() == ["b", "c"], "a member that ends is taken away")
        b.send_signal(signal.SIGKILL)  # it can't say so: its lease ends
        until(lambda: self.members() == ["c"], "a member whose registrar died is taken away")
        for program in self.programs[3:]:
            program.terminate()
        time.sleep(1)
        self.assertEqual(self.members(), ["c"])
        self.mirror.terminate()
        self.assertEqual(self.mirror.wait(WAIT), 0, self.log())


if __name__ == "__main__":
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if not shutil.which("etcd"):
        print("skipped: no etcd here (Debian: etcd-server)")
        sys.exit(77)
    parser = argparse.ArgumentParser()
    parser.add_argument("--down", type=float, default=Cluster.down, metavar="SECONDS")
    Cluster.down = parser.parse_args().down
    unittest.main(argv=sys.argv[:1])
