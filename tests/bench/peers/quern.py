# SPDX-License-Identifier: MIT
"""Quern's own figures: `quern bench`, and for served ones a pool with its gateway."""

import json
import pathlib
import tempfile

from .engine import Failure, Variant, run
from .serving import CONTEXT, Server, served


def rates(text, count=None):
    """Ids a second, of what `quern bench --json` printed; of `batch` by the number of sequences."""
    try:
        said = json.loads(text)
        if said["bench"] == "batch":
            return {str(batch["sequences"]): batch["tokens_per_second"] for batch in said["batches"]}
        return {said["bench"]: said["tokens_per_second"]}
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"quern bench: not what was expected: {text[:200]!r}") from error


class Quern:
    name = "Quern"

    def __init__(self, build, models, sizes, threads):
        self.build, self.models, self.sizes, self.threads = build, models, sizes, threads

    def version(self):
        return run(self.build / "quern", "--version").splitlines()[0]

    def bench(self, what, model, *options):
        return rates(run(self.build / "quern", "bench", what, "--json", "--device", "cpu", "--kv-type", "f16",
                         "--threads", self.threads, *options, model))

    def single(self, job, model):
        repetitions = ("-r", self.sizes.repetitions)
        return {**self.bench("decode", model, "-n", self.sizes.decode, *repetitions),
                **self.bench("prefill", model, "-n", job.prefill, *repetitions)}

    def batch(self, job, model):
        return self.bench("batch", model, "-s", ",".join(map(str, self.sizes.sequences)), "-D", self.sizes.batch_prompt,
                          "-n", self.sizes.batch_decode, "-r", 1)

    def depth(self, job, model):
        return self.bench("decode", model, "-D", self.sizes.depth, "-n", self.sizes.decode, "-r", 1)

    def serving(self, job, model):
        folder = tempfile.TemporaryDirectory(prefix="quern-peers-")
        log = pathlib.Path(folder.name) / "log"
        server = Server(self.name, log, self.build / "quern", "serve", model, "--device", "cpu", "--workers", "1",
                        "--threads", self.threads, "--slots", job.clients, "--ctx", CONTEXT, "--kv-type", "f16",
                        "--http", "127.0.0.1:0", "--rundir", pathlib.Path(folder.name) / "run",
                        said_port=r"ready: http://127\.0\.0\.1:(\d+)")
        return served("", job, server, folder.cleanup)

    def variants(self, job):
        model = self.models[job.model]
        if job.kind == "serving":
            return [self.serving(job, model)]
        measure = getattr(self, job.kind)
        return [Variant("", lambda number: measure(job, model))]
