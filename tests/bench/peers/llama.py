# SPDX-License-Identifier: MIT
"""llama.cpp and ik_llama.cpp, by the programs llama-bench, llama-batched-bench and llama-server of a folder. Both are
tried with and without flash attention, and ik_llama.cpp also with weights that it repacks while loading (-rtr)."""

import json
import pathlib
import re
import socket
import statistics
import tempfile

from .engine import Failure, Variant, run
from .serving import CONTEXT, Server, served

BATCH_CONTEXT = 256  # tokens of each sequence in the batch: llama.cpp rounds up to that


def bench_rates(text):
    """Ids a second, of what `llama-bench -o json` printed: the median of its repetitions, by "decode" and "prefill".
    Other lines before the array are skipped."""
    found = re.search(r"^\[$.*^\]$", text, re.MULTILINE | re.DOTALL)
    try:
        tests = json.loads(found[0])
        return {"prefill" if test["n_gen"] == 0 else "decode": statistics.median(test["samples_ts"]) for test in tests}
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"llama-bench: not what was expected: {text[:200]!r}") from error


def batch_rates(text):
    """Ids a second while all sequences decode, by their number, of the table that llama-batched-bench printed, to
    stdout or stderr."""
    rows = re.findall(r"^\|([ \d.|]+)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    if not cells or any(len(row) != 10 for row in cells):
        raise Failure(f"llama-batched-bench: not what was expected: {text[-200:]!r}")
    return {row[2]: float(row[7]) for row in cells}  # | PP | TG | B | N_KV | T_PP | S_PP | T_TG | S_TG | T | S |


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class LlamaCpp:
    name = "llama.cpp"
    flags = (("-fa 1", ("-fa", "1")), ("-fa 0", ("-fa", "0")))

    def __init__(self, folder, models, sizes, threads):
        self.folder, self.models, self.sizes, self.threads = folder, models, sizes, threads

    def version(self):
        server = self.folder / "llama-server"
        said = run(server, "--version", errors_too=True) if server.exists() else ""
        found = re.search(r"^version: (.+)$", said, re.MULTILINE)
        return f"{self.name} {found[1] if found else 'of an unknown version'}"

    def bench_command(self, model, flags):
        return (self.folder / "llama-bench", "-o", "json", "-m", model, "-t", self.threads, "-ctk", "f16", "-ctv", "f16",
                *self.bench_flags(flags))

    def bench_flags(self, flags):
        return flags

    def single(self, job, model, flags):
        return bench_rates(run(*self.bench_command(model, flags), "-p", job.prefill, "-n", self.sizes.decode,
                               "-r", self.sizes.repetitions))

    def depth_options(self):
        return ("-p", 0, "-n", self.sizes.decode, "-d", self.sizes.depth)

    def depth(self, job, model, flags):
        return bench_rates(run(*self.bench_command(model, flags), *self.depth_options(), "-r", 1))

    def batch(self, job, model, flags):
        most = max(self.sizes.sequences)
        return batch_rates(run(self.folder / "llama-batched-bench", "-m", model, "-c", most * BATCH_CONTEXT,
                               "-t", self.threads, "-tb", self.threads, "-ctk", "f16", "-ctv", "f16",
                               "-npp", self.sizes.batch_prompt, "-ntg", self.sizes.batch_decode,
                               "-npl", ",".join(map(str, self.sizes.sequences)), *flags, errors_too=True))

    def serving(self, job, label, model, flags):
        folder = tempfile.TemporaryDirectory(prefix="quern-peers-")
        port = free_port()
        # No prompt comes again, so none is to be kept (-cram 0).
        server = Server(f"{self.name} {label}", pathlib.Path(folder.name) / "log", self.folder / "llama-server",
                        "-m", model, "--host", "127.0.0.1", "--port", port, "-np", job.clients,
                        "-c", CONTEXT * job.clients, "-cram", 0,
                        "-t", self.threads, "-tb", self.threads, "-ctk", "f16", "-ctv", "f16", *flags, port=port)
        return served(label, job, server, folder.cleanup)

    def variant(self, job, label, flags):
        model = self.models[job.model]
        if job.kind == "serving":
            return self.serving(job, label, model, flags)
        measure = getattr(self, job.kind)
        return Variant(label, lambda number: measure(job, model, flags))

    def variants(self, job):
        return [self.variant(job, label, flags) for label, flags in self.flags]


class IkLlamaCpp(LlamaCpp):
    name = "ik_llama.cpp"
    flags = tuple((f"{label}{repack}", (*flags, *repack.split())) for repack in ("", " -rtr")
                  for label, flags in LlamaCpp.flags)

    def bench_flags(self, flags):
        """Its llama-bench wants a value where the other programs take a mere -rtr."""
        return tuple(word for flag in flags for word in ((flag, "1") if flag == "-rtr" else (flag,)))

    def depth_options(self):
        return ("-p", 0, "-n", 0, "-gp", f"{self.sizes.depth},{self.sizes.decode}")
