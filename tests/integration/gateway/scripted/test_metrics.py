# SPDX-License-Identifier: MIT
"""/metrics of quern-gateway, before a broker in a thread whose status has another number in each field."""

import re

import pytest
from saying import TOP, Gateway

# Metrics, and the fields of the status that they show. Those of gauges are in rows: ROW(type, field, "metric", …).
GAUGES = {metric: field for field, metric in re.findall(r'ROW\(\w+, (\w+), "(\w+)"', (TOP / "proto/gauges.h").read_text())}
WORKER = {"slots": "slots", "steps_total": "steps", "restarts_total": "restarts", **GAUGES}
# And of histograms: ROW(scale, field, "metric", "label", …).
HISTOGRAMS = [(field, metric, label.replace('\\"', '"')) for field, metric, label in re.findall(
    r'ROW\(\w+, (\w+), "(\w+)", "((?:[^"\\]|\\.)*)"', (TOP / "proto/histograms.h").read_text())]
POOL = {
    "sessions": "sessions", "queued": "queued", "running": "running", "admitted_total": "admitted",
    "rejected_total": "rejected", "ended_total": "ended", "moved_total": "moved", "journal_bytes": "journal_bytes", "journal_limit_bytes": "journal_limit", "journal_waiting": "journal_waiting",
}


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("q")  # a socket's path is short


def metrics(gateway):
    lines = [line for line in gateway.text("GET", "/metrics").splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_each_number_of_the_status_has_its_metric(folder):
    assert GAUGES["kv_blocks_free"] == "kv_free" and len(GAUGES) > 10
    worker = {field: 100 + i for i, field in enumerate(WORKER.values())}
    worker |= {field: [2_000_000_000, *range(i, i + 16)] for i, (field, _, _) in enumerate(HISTOGRAMS)}
    pool = {field: 200 + i for i, field in enumerate(POOL.values())}
    with Gateway(folder, "hermes", ["a"], **worker) as gateway:
        gateway.broker.pool.update(pool)
        gateway.until(lambda: metrics(gateway).get("quern_pool_journal_bytes") == pool["journal_bytes"])
        told = metrics(gateway)
        labels = '{worker="worker-0",model="fake"}'
        assert told["quern_worker_ready" + labels] == 1
        for name, field in WORKER.items():
            assert told[f"quern_worker_{name}{labels}"] == worker[field], name
        for name, field in POOL.items():
            assert told[f"quern_pool_{name}"] == pool[field], name
        known = {f"quern_worker_{name}{labels}" for name in [*WORKER, "ready"]} | {f"quern_pool_{name}" for name in POOL}
        for i, (field, metric, more) in enumerate(HISTOGRAMS):
            inside = labels[1:-1] + (f",{more}" if more else "")
            assert told[f"quern_worker_{metric}_count{{{inside}}}"] == sum(range(i, i + 16)), field
            per_unit = {"seconds": 1e9, "ratio": 1e3}.get(metric.split("_")[-1], 1)
            assert told[f"quern_worker_{metric}_sum{{{inside}}}"] == 2_000_000_000 / per_unit, field
            buckets = [name for name in told if name.startswith(f"quern_worker_{metric}_bucket{{{inside},le=")]
            assert [told[name] for name in buckets] == [sum(range(i, i + n)) for n in range(1, 17)], field
            assert buckets[-1].endswith('le="+Inf"}')
            known |= {f"quern_worker_{metric}_{end}{{{inside}}}" for end in ("count", "sum")} | set(buckets)
        assert {name for name in told if name.startswith(("quern_worker_", "quern_pool_"))} == known
        # A worker that does not take work says so.
        gateway.broker.worker["state"] = "loading"
        gateway.until(lambda: metrics(gateway)["quern_worker_ready" + labels] == 0)
