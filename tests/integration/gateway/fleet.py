# SPDX-License-Identifier: MIT
"""Pools of a fleet on loopback TCP with CURVE keys, for the tests beside it."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from pool import BUILD, MODEL, Gateway, Process, child_of, children_of, free_ports, until


def new_keys(home):
    """Makes a pool's keys in a new folder."""
    subprocess.run([str(BUILD / "quern"), "keys", str(home)], check=True, capture_output=True)
    return home


def key_of(home):
    """The public key there."""
    for line in (home / "quern.cert").read_text().splitlines():
        if "public-key" in line:
            return line.split('"')[1]
    raise AssertionError("no public key")


# A gateway takes a pool for dead after 400 ms. It may have heard it 100 ms before the broker died, and libquern tries to
# connect 20, 60, 140, 240 and 340 ms after that: a broker that listens so soon has moved nothing.
SOON = 0.22


class Pool:
    """A pool that is a member of the fleet in `folder`/fleet, under this name."""

    def __init__(self, folder, name, *arguments, model=MODEL, member=True, clients=None, broker="quern-broker"):
        self.folder, self.name, self.model, self.program = folder, name, model, broker
        self.home = folder / name
        self.home.mkdir()
        new_keys(self.home)
        self.file = folder / "fleet" / name
        self.member = ("--member", str(self.file)) if member else ()
        self.clients = ("--client-keys", str(clients)) if clients else ("--any-client",)
        self.arguments = arguments
        for _ in range(5):
            self.port = free_ports()
            self.start()
            if self.begins():
                return
        raise AssertionError(f"it does not begin:\n{self.process.log()}")

    def begins(self):
        """Whether it begins to serve: another test may have taken its ports meanwhile."""
        try:
            self.process.says("ready:")
        except AssertionError:
            if "Address already in use" in self.process.log():
                return False
            raise
        return True

    def start(self):
        self.process = Process(self.home, self.program, self.model, "--rundir", str(self.home / "run"),
                               "--tcp", f"127.0.0.1:{self.port}", "--curve-key", str(self.home / "quern.cert_secret"),
                               *self.clients, *self.member, *self.arguments)

    def renew_key(self):
        for file in self.home.glob("quern.cert*"):
            file.unlink()
        new_keys(self.home)

    @property
    def pid(self):
        return self.process.process.pid

    @property
    def broker(self):
        """The pid of the process that clients talk to."""
        return child_of(self.pid, "quern-broker")

    def key(self):
        return key_of(self.home)

    def text(self, key=None, port=None):
        """What its file says, or would."""
        return f'connect = "tcp://127.0.0.1:{port or self.port}"\nserver-key = "{key or self.key()}"\n'

    def is_member(self):
        return self.file.exists()

    def kill(self):
        """Every process of it, at once, as if its host had died."""
        os.kill(self.pid, signal.SIGSTOP)  # so that it starts no others meanwhile
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in [*map(int, children), self.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.process.wait()

    def replace_broker(self):
        """Kills the broker; the seconds until the next one takes connections, which a busy machine makes more."""
        dead = self.broker
        os.kill(dead, signal.SIGKILL)
        begun = time.monotonic()
        until(lambda: children_of(self.pid, "quern-broker") - {dead} and self.listens(), "another broker listens")
        return time.monotonic() - begun

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def status(self):
        said = subprocess.run([str(BUILD / "quern"), "status", "--json", "--connect", str(self.home / "run")],
                              capture_output=True, timeout=60, check=True)
        return json.loads(said.stdout)

    def end(self):
        if self.process.process.poll() is None:
            return self.process.end()
        return self.process.process.returncode


class FleetGateway(Gateway):
    """A gateway before the fleet of that folder."""

    def __init__(self, folder, *arguments, name="gateway"):
        home = folder / name
        home.mkdir()
        self.fleet = str(folder / "fleet")
        super().__init__(home, None, *arguments)

    def endpoint(self, rundir):
        return "--fleet", self.fleet

    def is_up(self, pool):
        return self.metrics().get(f'quern_fleet_up{{pool="{pool.name}"}}') == 1

    def of(self, metric, pool):
        return self.metrics()[f'quern_fleet_{metric}{{pool="{pool.name}"}}']


class Base(unittest.TestCase):
    """A folder with an empty fleet in it; pools that a test has made end with it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-fl-"))
        self.fleet = self.folder / "fleet"
        self.fleet.mkdir(mode=0o755)
        self.fleet.chmod(0o755)
        self.pools, self.gateways = [], []

    def tearDown(self):
        ends = [(gateway.end(), gateway.log()) for gateway in self.gateways]
        for pool in self.pools:
            pool.end()
        shutil.rmtree(self.folder, ignore_errors=True)
        for status, log in ends:
            self.assertEqual(status, 0, log)

    def pool(self, name, *arguments, **more):
        pool = Pool(self.folder, name, *arguments, **more)
        self.pools.append(pool)
        return pool

    def gateway(self, *pools):
        """A gateway that is connected to these pools, or to all."""
        gateway = FleetGateway(self.folder, "--stream-kb", "1000000", "--streams-mb", "1000", name=f"gateway-{len(self.gateways)}")
        self.gateways.append(gateway)
        for pool in pools or self.pools:
            until(lambda pool=pool: gateway.is_up(pool), f"{pool.name} is up")
        gateway.ready()
        return gateway
