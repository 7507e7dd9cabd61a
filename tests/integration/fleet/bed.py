#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A fleet on hosts of its own (see scripts/fleet). Called with BUILD_FOLDER MODEL and options."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "gateway"))

import hosts  # noqa: E402

hosts.enter()

from calm import calm  # noqa: E402
from clients import Clients  # noqa: E402
from faults import Faults  # noqa: E402
from members import GatewayHost, MemberHost  # noqa: E402
from pauses import pauses  # noqa: E402
from pool import BUILD, until  # noqa: E402

COLOURS = ("red", "green", "blue", "black", "white")


def options():
    parser = argparse.ArgumentParser(prog="scripts/fleet", usage="scripts/fleet [HOSTS] [option ...]")
    parser.add_argument("hosts", nargs="?", type=int, default=3)
    parser.add_argument("-s", "--seconds", type=float, default=60, help="of faults at random")
    parser.add_argument("-n", "--requests", type=int, help="instead, until that many are answered")
    parser.add_argument("-r", "--seed", type=int, default=int(time.time()))
    parser.add_argument("-c", "--clients", type=int, default=32, help="that ask at once")
    parser.add_argument("-e", "--every", type=float, default=0.7, help="seconds from a fault to the next, on average")
    parser.add_argument("-d", "--device", default="paced", help="paced: 4 ms a token, computes nothing; null, cpu")
    parser.add_argument("-k", "--kills", type=int, default=10, help="hosts killed, and cut off, to measure the pause")
    parser.add_argument("--rounds", type=int, default=3, help="of what must move nothing")
    parser.add_argument("--goals", action="store_true", help="the pauses count too")
    parser.add_argument("--keep", action="store_true", help="the folder with the logs stays")
    return parser.parse_args(sys.argv[3:])


class Bed:
    """The hosts, and what was wrong so far."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-bed-"))
        self.bad = []
        fleet_folder = self.folder / "fleet"
        fleet_folder.mkdir(mode=0o755)
        keys = self.folder / "clients"
        subprocess.run([str(BUILD / "quern"), "keys", "--client", "door", str(keys)], check=True, capture_output=True)
        shutil.move(keys / "door.cert_secret", self.folder / "door.cert_secret")
        shutil.copy(keys / "door.cert", self.folder / "door.cert")
        hosts.build_bridge()
        pool_options = ("--frame-us", "10000", "--slots", "16", "--drain-seconds", "1", "--ctx", "300000")
        if options.device == "cpu":
            pool_options = ("--frame-us", "10000", "--slots", "4", "--drain-seconds", "1", "--threads", "1")
        self.hosts = [MemberHost(self.folder, 1 + i, options.device, pool_options, keys) for i in range(options.hosts)]
        self.gateways = [GatewayHost(self.folder, 1 + i, self.folder / "door.cert_secret") for i in range(2)]

    def start(self):
        for place in self.hosts + self.gateways:
            place.start()
        for host in self.hosts:
            host.is_ready()
        for gateway in self.gateways:
            until(lambda gateway=gateway: all(gateway.is_up(host) for host in self.hosts), "every pool is up")
            gateway.gateway.ready()

    def clients(self, bodies, at_once, **more):
        return Clients([gateway.address for gateway in self.gateways], bodies, at_once, **more)

    def moved(self):
        """Requests that the gateways of now have moved."""
        return sum(gateway.moved() for gateway in self.gateways)

    def end(self):
        for gateway in self.gateways:
            if gateway.end() != 0:
                self.bad.append(f"{gateway.name} did not end well:\n{gateway.gateway.log()[-3000:]}")
        for host in self.hosts:
            host.end()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def body(number, length):
    return {"prompt": f"{number}. Tell me about {COLOURS[number % len(COLOURS)]} things. " * (1 + number % 7),
            "max_tokens": length, "temperature": 0.8, "seed": number, "ignore_eos": True, "stream": True,
            "frequency_penalty": (number % 3) / 10, "stream_options": {"include_usage": True}}


def undisturbed(bed, bodies):
    """The answers that are expected of every later run."""
    clients = bed.clients(bodies, 16)
    clients.join()
    if clients.troubles or len(clients.answers) != len(bodies):
        raise SystemExit("the undisturbed run failed:\n" + "\n".join(clients.troubles[:10]))
    return [clients.answers[i] for i in range(len(bodies))]


def tell(name, text):
    print(f"{name:12}{text}", flush=True)


def told(counts):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def chaos(bed, bodies, expected):
    most = bed.options.requests
    faults = Faults(bed, bed.options.seed, bed.options.every)
    begun = time.monotonic()
    clients = bed.clients(bodies, bed.options.clients, expected=expected, seed=bed.options.seed,
                          most=most if most else 1 << 60)
    faults.go_on(lambda: time.monotonic() - begun > bed.options.seconds if most is None else not clients.is_alive())
    clients.end()
    counts = clients.counts
    bed.bad += clients.troubles + faults.errors
    tell("faults", f"{time.monotonic() - begun:.0f} s: {told(faults.counts)}")
    tell("", f"{counts['answers']} answers as expected, {counts['lost']} lost, {counts['doubled']} doubled, "
             f"{counts['different']} different; {counts['asked again']} asked again since their gateway died, "
             f"{counts['refused']} for now refused")
    if clients.refusals:
        tell("", f"refused: {told(clients.refusals)}")


def main():
    opts = options()
    if opts.hosts < 2:
        raise SystemExit("scripts/fleet: at least two hosts")
    bed = Bed(opts)
    tell("fleet", f"{opts.hosts} hosts, 2 gateways, device {opts.device}, seed {opts.seed}")
    try:
        bed.start()
        short = [body(i, (4, 8, 16, 24, 150)[i % 5]) for i in range(100)]
        long = [body(i, 800) for i in range(8)]
        if opts.device == "cpu":
            long = [body(i, 400) for i in range(8)]
        expected = undisturbed(bed, short + (long if opts.rounds > 0 or opts.kills > 0 else []))
        if opts.rounds > 0:
            calm(bed, long, expected[len(short):], tell)
        if opts.seconds > 0 or opts.requests:
            chaos(bed, short, expected[:len(short)])
        if opts.kills > 0:
            pauses(bed, long, expected[len(short):], tell)
    finally:
        bed.end()
    for text in bed.bad[:20]:
        print(f"wrong: {text}")
    return 1 if bed.bad else 0


if __name__ == "__main__":
    sys.exit(main())
