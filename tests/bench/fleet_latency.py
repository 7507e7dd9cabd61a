#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a gateway at a remote pool adds to a request: BUILD_FOLDER MODEL [N].

N requests for one token on a persistent connection, in turn by three gateways of one pool with the null device: at its
run directory; with --fleet, the pool in another network namespace, by CURVE over a pair of virtual cables; and the same
without a fleet. Needs root, or rights to make namespaces."""

import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BODY = json.dumps({"prompt": [300, 301], "max_tokens": 1})
NETWORK = """mount -t tmpfs none /run; mkdir -p /run/netns; ip link set lo up; ip netns add h1
ip link add v1 type veth peer name eth0 netns h1; ip addr add 10.77.0.254/16 dev v1; ip link set v1 up
ip -n h1 addr add 10.77.0.1/16 dev eth0; ip -n h1 link set eth0 up; ip -n h1 link set lo up"""
GATEWAYS = {"at the run directory": 8001, "fleet of one, remote": 8002, "one pool, remote": 8003}


def ask(connection):
    begun = time.perf_counter()
    connection.request("POST", "/v1/completions", BODY)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return (time.perf_counter() - begun) * 1e3


def connect(port):
    for _ in range(150):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            ask(connection)
            return connection
        except (OSError, AssertionError):
            time.sleep(0.2)
    raise SystemExit(f"the gateway at port {port} does not answer")


def main():
    build, model, n = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), int((sys.argv + [2000])[3])
    if "QUERN_INSIDE" not in os.environ:
        os.execvpe("unshare", ["unshare", "-n", "-m", *sys.argv], {**os.environ, "QUERN_INSIDE": "1"})
    subprocess.run(["sh", "-ec", NETWORK], check=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("fleet", 0o755)
        os.mkdir("clients", 0o755)
        for command in (["pool"], ["--client", "door", "clients"]):
            subprocess.run([build / "quern", "keys", *command], check=True, capture_output=True)
        os.rename("clients/door.cert_secret", "door.cert_secret")
        remote = "tcp://10.77.0.1:7700"
        key = [line.split('"')[1] for line in open("pool/quern.cert") if "public-key" in line][0]
        pathlib.Path("fleet/h1").write_text(f'connect = "{remote}"\nserver-key = "{key}"\n')
        started = [subprocess.Popen(["nsenter", "--net=/run/netns/h1", build / "quern-broker", model, "--device", "null",
                                     "--frame-us", "0", "--ctx", "4096", "--rundir", f"{folder}/run", "--tcp", remote[6:],
                                     "--curve-key", "pool/quern.cert_secret", "--client-keys", "clients"])]
        ends = (["--connect", f"{folder}/run"], ["--fleet", "fleet", "--client-key", "door.cert_secret"],
                ["--connect", remote, "--server-key", "pool/quern.cert", "--client-key", "door.cert_secret"])
        for port, end in zip(GATEWAYS.values(), ends):
            started.append(subprocess.Popen([build / "quern-gateway", *end, "--listen", f"127.0.0.1:{port}"]))
        try:
            connections = {name: connect(port) for name, port in GATEWAYS.items()}
            times = {name: [] for name in GATEWAYS}
            for _ in range(n):
                for name, connection in connections.items():
                    times[name].append(ask(connection))
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in middle.items():
        print(f"{name:24} p50 {taken:.3f} ms, {taken - middle['at the run directory']:+.3f} ms")
    print("load average", os.getloadavg()[0])


if __name__ == "__main__":
    main()
