# SPDX-License-Identifier: MIT
"""OpenVINO GenAI, by the Python that has it: openvino_child.py keeps a model there for all rounds of a job and is asked
by lines of JSON. It takes GGUF files of some types only, and its reader of tokenizers not those of synthetic models; as
prompts are ids, any other file's tokenizer does."""

import json
import pathlib
import select
import statistics
import subprocess
import tempfile
import time

from .engine import TIMEOUT_S, Failure, Variant, last_words, run

CHILD = pathlib.Path(__file__).with_name("openvino_child.py")
FEW_IDS = 4  # of the prompt before ids that are decoded


class Child:
    def __init__(self, python, model, tokenizer, threads):
        self.command = [str(word) for word in (python, CHILD, model, tokenizer, threads)]
        self.process, self.err = None, None

    def start(self):
        self.err = tempfile.TemporaryFile("w+", errors="replace")
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                            text=True, bufsize=1, start_new_session=True)
        except OSError as error:
            raise Failure(f"{self.command[0]}: {error.strerror}") from error
        return self.read()

    def read(self):
        """Its next line. The child writes whole lines and only when asked, so none waits in a buffer."""
        end = time.monotonic() + TIMEOUT_S
        ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            self.process.wait()
            self.err.seek(0)
            raise Failure(f"OpenVINO GenAI: {last_words(self.err.read())}")
        return json.loads(line)

    def ask(self, n_prompt, n_new):
        """{"first_s": seconds to the first id, "next_s": seconds of each further one}."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"prompt": n_prompt, "new": n_new}) + "\n")
        except OSError:
            pass  # why it is gone is in what it said
        return self.read()

    def close(self):
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class OpenVino:
    name = "OpenVINO GenAI"

    def __init__(self, python, models, sizes, threads, tokenizer):
        self.python, self.models, self.sizes, self.threads, self.tokenizer = python, models, sizes, threads, tokenizer

    def version(self):
        return f"{self.name} {run(self.python, CHILD, '--version').split('-')[0].strip()}"

    def single(self, job, child):
        decodes, prefills = [], []
        for _ in range(self.sizes.repetitions):
            decodes.append(1 / child.ask(FEW_IDS, self.sizes.decode + 1)["next_s"])
            prefills.append(job.prefill / child.ask(job.prefill, 1)["first_s"])
        return {"decode": statistics.median(decodes), "prefill": statistics.median(prefills)}

    def depth(self, job, child):
        return {"decode": 1 / child.ask(self.sizes.depth, self.sizes.decode + 1)["next_s"]}

    def variants(self, job):
        if job.kind not in ("single", "depth"):
            return []
        child = Child(self.python, self.models[job.model], self.tokenizer, self.threads)
        measure = getattr(self, job.kind)
        return [Variant("", lambda number: measure(job, child), child.close)]
