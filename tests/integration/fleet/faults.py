# SPDX-License-Identifier: MIT
"""What happens to the hosts of a fleet at random: each fault is made, lasts a while, and is healed."""

import collections
import os
import random
import signal
import threading
import time

BACK_SECONDS = 60  # until a pool that was started again must be in use


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it was replaced meanwhile


def wait_until_used(bed, host):
    end = time.monotonic() + BACK_SECONDS
    while time.monotonic() < end:
        try:
            if all(gateway.is_up(host) for gateway in bed.gateways):
                return
        except (OSError, ValueError):
            pass  # that gateway is being replaced
        time.sleep(0.1)
    raise AssertionError(f"{host.name} is not used {BACK_SECONDS} s after it came back:\n{host.process.log()[-2000:]}")


def host_killed(bed, host, rng):
    host.kill_host()
    time.sleep(rng.uniform(0.3, 2))
    host.start_host()


def pool_killed(bed, host, rng):
    host.kill_pool()
    time.sleep(rng.uniform(0, 1))
    host.start()


def host_frozen(bed, host, rng):
    host.signal_all(signal.SIGSTOP)
    time.sleep(rng.uniform(0.3, 3))
    host.signal_all(signal.SIGCONT)


def cable_pulled(bed, host, rng):
    host.link("down")
    time.sleep(rng.uniform(0.2, 3))
    host.link("up")


def pool_hears_nobody(bed, host, rng):
    host.is_deaf_to(bed.gateways)
    time.sleep(rng.uniform(0.2, 3))
    host.hears()


def nobody_hears_pool(bed, host, rng):
    deaf = rng.sample(bed.gateways, rng.randint(1, len(bed.gateways)))
    for gateway in deaf:
        gateway.is_deaf_to([host])
    time.sleep(rng.uniform(0.2, 3))
    for gateway in deaf:
        gateway.hears()


def pool_ends(bed, host, rng):
    host.end()
    time.sleep(rng.uniform(0, 1))
    host.start()


def taken_away(bed, host, rng):
    file = host.file.read_text()
    host.file.unlink()
    time.sleep(rng.uniform(0.2, 3))
    hidden = host.file.with_name("." + host.name)
    hidden.write_text(file)
    hidden.rename(host.file)


def broker_killed(bed, host, rng):
    send(host.brokers(), signal.SIGKILL)


def broker_frozen(bed, host, rng):
    pids = host.brokers()
    send(pids, signal.SIGSTOP)
    time.sleep(rng.uniform(0.2, 3))
    send(pids, signal.SIGCONT)


def worker_killed(bed, host, rng):
    send(host.workers(), signal.SIGKILL)


def gateway_killed(bed, gateway, rng):
    gateway.kill()
    time.sleep(rng.uniform(0, 0.5))
    gateway.start()


def gateway_frozen(bed, gateway, rng):
    gateway.frozen(rng.uniform(0.2, 2))


def gateway_cut_off(bed, gateway, rng):
    gateway.is_deaf_to(bed.hosts)
    time.sleep(rng.uniform(0.2, 2))
    gateway.hears()


OF_HOSTS = {
    "hosts killed": host_killed, "pools killed": pool_killed, "hosts frozen": host_frozen,
    "cables pulled": cable_pulled, "pools deaf": pool_hears_nobody, "pools unheard": nobody_hears_pool,
    "drains": pool_ends, "taken away": taken_away, "brokers killed": broker_killed, "brokers frozen": broker_frozen,
    "workers killed": worker_killed}
OF_GATEWAYS = {"gateways killed": gateway_killed, "gateways frozen": gateway_frozen, "gateways cut off": gateway_cut_off}


class Faults:
    """Makes faults at random, at most so many at a time that most hosts, and a gateway, are whole."""

    def __init__(self, bed, seed, every):
        self.bed, self.every, self.random = bed, every, random.Random(seed)
        self.counts = collections.Counter()
        self.threads, self.errors = {}, []

    def one(self):
        """Begins one, if there is still a host or gateway to be troubled."""
        of_gateway = self.random.random() < 0.2
        faults, places = (OF_GATEWAYS, self.bed.gateways) if of_gateway else (OF_HOSTS, self.bed.hosts)
        name = self.random.choice(list(faults))
        free = [place for place in places if not self.is_troubled(place)]
        if len(places) - len(free) >= max((len(places) - 1) // 2, 1):
            return
        self.begin(name, faults[name], self.random.choice(free))

    def is_troubled(self, place):
        return place in self.threads and self.threads[place].is_alive()

    def begin(self, name, fault, place):
        self.counts[name] += 1
        rng = random.Random(self.random.random())
        self.threads[place] = threading.Thread(target=self.suffer, args=(name, fault, place, rng))
        self.threads[place].start()

    def suffer(self, name, fault, place, rng):
        try:
            fault(self.bed, place, rng)
            if place in self.bed.hosts:
                wait_until_used(self.bed, place)
        except Exception as error:  # told at the end
            self.errors.append(f"{name}, {place.name}: {error!r}")

    def go_on(self, is_over):
        while not is_over():
            self.one()
            time.sleep(self.random.expovariate(1 / self.every))
        for thread in self.threads.values():
            thread.join()
