# SPDX-License-Identifier: MIT
"""How long a stream is silent when its host dies, or is cut off."""

import signal
import time

from faults import send, wait_until_used
from pool import until

GOALS = {"hosts killed": 0.5, "pools killed": 0.5, "cables pulled": 1.5, "pools deaf": 1.5, "pools unheard": 1.5,
         "brokers frozen": 1.5}
WATCHED = 2.5  # seconds after the fault


def unfreeze(bed, host):
    host.signal_all(signal.SIGCONT)


def deafen_gateways(bed, host):
    for gateway in bed.gateways:
        gateway.is_deaf_to([host])


def undeafen_gateways(bed, host):
    for gateway in bed.gateways:
        gateway.hears()


def freeze_broker(bed, host):
    send(host.brokers(), signal.SIGSTOP)


FAULTS = {
    "hosts killed": (lambda bed, host: host.kill_host(), lambda bed, host: host.start_host()),
    "pools killed": (lambda bed, host: host.kill_pool(), lambda bed, host: host.start()),
    "cables pulled": (lambda bed, host: host.link("down"), lambda bed, host: host.link("up")),
    "pools deaf": (lambda bed, host: host.is_deaf_to(bed.gateways), lambda bed, host: host.hears()),
    "pools unheard": (deafen_gateways, undeafen_gateways),
    "brokers frozen": (freeze_broker, unfreeze)}


def quantile(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


def busiest(bed):
    """The host that has most of the streams."""
    def requests(host):
        return sum(gateway.of("requests", host) for gateway in bed.gateways)
    until(lambda: any(requests(host) > 0 for host in bed.hosts), "something runs")
    return max(bed.hosts, key=requests)


def one(bed, clients, name, host):
    """The pauses of the streams that the fault has moved."""
    fault, heal = FAULTS[name]
    before = bed.moved()
    running = list(clients.running)
    moment = time.monotonic()
    fault(bed, host)
    time.sleep(WATCHED)
    n = int(bed.moved() - before)
    heal(bed, host)
    wait_until_used(bed, host)
    gaps = sorted((gap for stream in running if (gap := stream.gap_after(moment)) is not None), reverse=True)
    return gaps[:n]


def pauses(bed, bodies, expected, tell):
    clients = bed.clients(bodies, 2 * len(bodies), expected=expected, most=1 << 60)
    until(lambda: len(clients.running) == 2 * len(bodies), "all have asked")
    for name in FAULTS:
        gaps = []
        for _ in range(bed.options.kills):
            gaps += one(bed, clients, name, busiest(bed))
        if not gaps:
            tell("pauses", f"{bed.options.kills} {name}: nothing ran there")
            continue
        p50, p99 = quantile(gaps, 0.5), quantile(gaps, 0.99)
        tell("pauses", f"{bed.options.kills} {name}: the next token after p50 {p50:.2f} s, p99 {p99:.2f} s, "
                       f"at most {max(gaps):.2f} s, of {len(gaps)} streams")
        if bed.options.goals and p99 > GOALS[name]:
            bed.bad.append(f"{name}: the next token after {p99:.2f} s, not {GOALS[name]} s")
    clients.end()
    bed.bad += clients.troubles
