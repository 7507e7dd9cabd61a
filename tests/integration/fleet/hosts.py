# SPDX-License-Identifier: MIT
"""Hosts as network namespaces, on one bridge, inside namespaces of their own: nothing can leave them, and when the
program that began them ends everything in them does."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

INSIDE = "QUERN_FLEET_BED"
HERE = "10.77.255.254"  # the address of whoever is on no host
MISSING = 77  # the exit status of a test that is skipped


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(MISSING)


def enter():
    """Starts this program again where it may build hosts, or skips it with a line. Returns inside."""
    if os.environ.get(INSIDE):
        return
    missing = [tool for tool in ("unshare", "nsenter", "ip", "nft") if not shutil.which(tool, path=tools())]
    if missing:
        skip(f"no {', '.join(missing)} here")
    command = ["unshare", *([] if os.getuid() == 0 else ["-r"]), "-n", "-m", "-p", "-f", "--mount-proc", "--kill-child"]
    tried = subprocess.run([*command, "sh", "-c", "mount -t tmpfs none /run && ip link add br0 type bridge"],
                           capture_output=True, text=True, env={**os.environ, "PATH": tools()})
    if tried.returncode != 0:
        skip(f"namespaces are forbidden here: {tried.stderr.strip()}")
    environment = {**os.environ, INSIDE: "1", "PATH": tools()}
    # A shell is the first process there, which takes in the children of those that are killed.
    os.execvpe(command[0], [*command, "sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv], environment)


def tools():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def sh(command):
    subprocess.run(["sh", "-ec", command], check=True, stdin=subprocess.DEVNULL)


def build_bridge():
    sh(f"mount -t tmpfs none /run; mkdir -p /run/netns; ip link set lo up; ip link add br0 type bridge; "
       f"ip link set br0 up; ip addr add {HERE}/16 dev br0")


class Host:
    """A namespace with an address. Its power and its cable can be pulled."""

    n_built = 0

    def __init__(self, name, address):
        Host.n_built += 1
        veth = f"v{Host.n_built}"
        self.name, self.address = name, address
        sh(f"ip netns add {name}; ip link add {veth} type veth peer name eth0 netns {name}; "
           f"ip link set {veth} master br0 up; ip -n {name} addr add {address}/16 dev eth0; "
           f"ip -n {name} link set eth0 up; ip -n {name} link set lo up")
        self.nft("add table inet cut; add chain inet cut in { type filter hook input priority 0; }")

    @property
    def within(self):
        """The command that starts another one there."""
        return "nsenter", f"--net=/run/netns/{self.name}"

    def nft(self, rules):
        subprocess.run([*self.within, "nft", rules], check=True, stdin=subprocess.DEVNULL)

    def link(self, state):
        sh(f"ip -n {self.name} link set eth0 {state}")

    def is_deaf_to(self, others):
        """From now on it hears nothing of those hosts, which still hear it."""
        for other in others:
            self.nft(f"add rule inet cut in ip saddr {other.address} drop")

    def hears(self):
        self.nft("flush chain inet cut in")

    def pids(self):
        said = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True)
        return [int(pid) for pid in said.stdout.split()]

    def signal_all(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has ended meanwhile

    def kill_all(self):
        """All its processes at once."""
        self.signal_all(signal.SIGSTOP)  # none starts another one meanwhile
        while any(is_alive(pid) for pid in self.pids()):
            self.signal_all(signal.SIGKILL)
            time.sleep(0.002)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False
