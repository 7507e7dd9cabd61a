# SPDX-License-Identifier: MIT
"""What must move nothing: brokers and workers that are replaced, gateways that stand still or are cut off, workers that
take long, prompts that take long."""

import os
import signal
import time

import fleet
from faults import send
from pool import until


def broker_replaced(bed, host):
    return host.replace_broker() < fleet.SOON


def worker_replaced(bed, host):
    send(host.workers(), signal.SIGKILL)
    return True


def worker_frozen(bed, host):
    pids = host.workers()
    send(pids, signal.SIGSTOP)
    time.sleep(1.5)
    send(pids, signal.SIGCONT)
    return True


def gateway_frozen(bed, host):
    bed.gateways[0].frozen(1.5)
    return True


def gateway_cut_off(bed, host):
    bed.gateways[0].is_deaf_to(bed.hosts)
    time.sleep(1.5)
    bed.gateways[0].hears()
    return True


def long_prompt(bed, host):
    tokens = 100000 if bed.options.device != "cpu" else 1500
    status, _, answer = bed.gateways[0].gateway.post("/v1/completions", prompt=[40] * tokens, max_tokens=4)
    if status != 200:
        bed.bad.append(f"a long prompt: {status} {answer}")
    return True


DISTURBANCES = {"brokers replaced": broker_replaced, "workers replaced": worker_replaced,
                "workers frozen": worker_frozen, "gateways frozen": gateway_frozen,
                "gateways cut off": gateway_cut_off, "long prompts": long_prompt}


def calm(bed, bodies, expected, tell):
    """Makes each of them while streams run. One that took the machine too long counts apart."""
    clients = bed.clients(bodies, len(bodies), expected=expected, most=1 << 60)
    until(lambda: len(clients.running) == len(bodies), "all have asked")
    said = []
    rounds = bed.options.rounds
    for name, disturbance in DISTURBANCES.items():
        moved = late = n_late = 0
        for i in range(rounds):
            before = bed.moved()
            in_time = disturbance(bed, bed.hosts[i % len(bed.hosts)])
            time.sleep(0.7)
            more = bed.moved() - before
            n_late += not in_time
            late += more if not in_time else 0
            moved += more if in_time else 0
        said.append(f"{rounds} {name}: {moved:.0f} moved" + (f" (and {late:.0f} by {n_late} that came late)" if n_late else ""))
        if moved:
            bed.bad.append(f"{moved:.0f} requests moved for {name}")
    clients.end()
    bed.bad += clients.troubles
    tell("calm", ", ".join(said))
