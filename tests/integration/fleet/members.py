# SPDX-License-Identifier: MIT
"""Pools and gateways on hosts of their own."""

import os
import pathlib
import signal
import time

import fleet
from hosts import Host, is_alive
from pool import Gateway, Process, children_of, until

PORT = 7700


class MemberHost(Host):
    """A host with a pool that is a member of the fleet in `folder`/fleet."""

    def __init__(self, folder, number, device, options, key_folder):
        super().__init__(f"h{number}", f"10.77.0.{number}")
        self.device, self.options = device, options
        self.home = folder / self.name
        self.home.mkdir()
        fleet.new_keys(self.home)
        self.file = folder / "fleet" / self.name
        self.clients = key_folder
        self.process = None

    @property
    def program(self):
        return "tests/integration/paced/quern-broker" if self.device == "paced" else "quern-broker"

    def start(self):
        host = self

        class There(Process):
            within = host.within

        device = "null" if self.device == "paced" else self.device
        self.process = There(
            self.home, self.program, fleet.MODEL, "--device", device, "--rundir", str(self.home / "run"), "--tcp",
            f"{self.address}:{PORT}", "--curve-key", str(self.home / "quern.cert_secret"), "--client-keys",
            str(self.clients), "--member", str(self.file), *self.options)

    def is_ready(self):
        self.process.says("ready:")

    @property
    def pid(self):
        """The supervisor's."""
        return self.process.process.pid

    def brokers(self):
        return children_of(self.pid, "quern-broker")

    def workers(self):
        return children_of(self.pid, "quern-worker")

    def kill_pool(self):
        """Every process of it at once; the host lives, and says so to whoever asks."""
        self.kill_all()
        self.process.process.wait()

    def kill_host(self):
        """The same without a word to anybody."""
        self.link("down")
        self.kill_pool()

    def start_host(self):
        self.link("up")
        self.start()

    def replace_broker(self):
        """Kills the broker; the seconds until the next one is there."""
        dead = self.brokers()
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
        begun = time.monotonic()
        until(lambda: self.brokers() - dead and self.listens(), "another broker listens")
        return time.monotonic() - begun

    def listens(self):
        sockets = (pathlib.Path(f"/proc/{self.pid}/net/tcp")).read_text().splitlines()[1:]
        wanted = f":{PORT:04X}"
        return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in sockets)

    def end(self):
        if self.process.process.poll() is None:
            self.process.process.send_signal(signal.SIGTERM)
        return self.process.process.wait(60)


class GatewayHost(Host):
    """A host with a gateway before the fleet in `folder`/fleet."""

    def __init__(self, folder, number, client_key):
        super().__init__(f"g{number}", f"10.77.1.{number}")
        self.home = folder / self.name
        self.home.mkdir()
        self.folder, self.client_key = folder, client_key
        self.gateway = None

    def start(self):
        host = self

        class There(Gateway):
            within = host.within
            address = f"{host.address}:8080"

            def endpoint(self, rundir):
                return "--fleet", str(host.folder / "fleet")

        self.gateway = There(self.home, None, "--client-key", str(self.client_key), "--open", "--drain-seconds", "5")

    def kill(self):
        os.kill(self.gateway.process.pid, signal.SIGKILL)
        self.gateway.process.wait()

    def frozen(self, seconds):
        pid = self.gateway.process.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)

    def moved(self):
        """Requests that it has moved so far."""
        return sum(value for name, value in self.gateway.metrics().items() if name.startswith("quern_fleet_moved_total"))

    def of(self, metric, host):
        return self.gateway.metrics().get(f'quern_fleet_{metric}{{pool="{host.name}"}}', 0)

    def is_up(self, host):
        return self.of("up", host) == 1 and self.of("draining", host) == 0

    def end(self):
        return self.gateway.end()
