# SPDX-License-Identifier: MIT
"""What the engines have in common. An engine has a name and, for a job, variants: ways to run it, as with and without
flash attention. A variant measures the job once and gives the figures by their keys."""

import os
import signal
import subprocess
import tempfile

TIMEOUT_S = 600  # until one measurement that does not end counts as failed


class Failure(Exception):
    """An engine cannot do a job, or did not: the text says why."""


class Variant:
    """`measure(round_number)` gives {key: value}, or raises Failure. `close()` ends what it started."""

    def __init__(self, label, measure, close=lambda: None):
        self.label, self.measure, self.close = label, measure, close


def last_words(text):
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " / ".join(lines[-3:]) if lines else "it printed nothing"


def run(*command, errors_too=False):
    """What the program printed to stdout, and to stderr where that is wanted. Its processes end with it, and with us.
    It runs in a folder of its own: some leave files there."""
    words = [str(word) for word in command]
    errors = subprocess.STDOUT if errors_too else subprocess.PIPE
    with tempfile.TemporaryDirectory(prefix="quern-peers-") as folder:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=folder,
                                       text=True, errors="replace", start_new_session=True)
        except OSError as error:
            raise Failure(f"{words[0]}: {error.strerror}") from error
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{words[0]}: not done after {TIMEOUT_S} s") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    if process.returncode != 0:
        raise Failure(f"{words[0]}: status {process.returncode}: {last_words(err or out)}")
    return out
