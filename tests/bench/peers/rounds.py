# SPDX-License-Identifier: MIT
"""A job, round by round: every variant of every engine in turn, so that what the machine's neighbours do meets all."""

import statistics

from .engine import Failure

BEHIND = 0.1  # an engine's variant that the first round has further behind its best, in every figure, is asked no more


class Samples:
    """What one engine's variants gave: values[label][key] is a list with a value for each round."""

    def __init__(self):
        self.values = {}

    def add(self, label, measured):
        for key, value in measured.items():
            self.values.setdefault(label, {}).setdefault(key, []).append(value)

    def drop(self, label):
        self.values.pop(label, None)

    def best(self, figure):
        """The median of the best variant and its label, or None. Variants with fewer rounds than others are left out."""
        lists = {label: keys[figure.key] for label, keys in self.values.items() if figure.key in keys}
        most = max((len(values) for values in lists.values()), default=0)
        medians = {label: statistics.median(values) for label, values in lists.items() if len(values) == most}
        if not medians:
            return None
        value = figure.best(medians.values())
        return value, next(label for label, median in medians.items() if median == value)


def hopeless(job, measured):
    """The labels of `measured` {label: {key: value}} that are behind the best of them in every figure."""
    def near(figure, label):
        best = figure.best([values[figure.key] for values in measured.values()])
        ratio = measured[label][figure.key] / best
        return ratio <= 1 + BEHIND if figure.less_is_better else ratio >= 1 - BEHIND

    return [label for label in measured if not any(near(figure, label) for figure in job.figures)]


def checked(job, measured):
    missing = [figure.key for figure in job.figures if not measured.get(figure.key, 0) > 0]
    if missing:
        raise Failure(f"no figure \"{missing[0]}\" in {measured}")
    return measured


def run_job(job, engines, rounds, say):
    """{engine name: Samples}. Asked to stop (KeyboardInterrupt), it gives what there is, and tells so."""
    turns = [(engine.name, variant) for engine in engines for variant in engine.variants(job)]
    samples = {engine.name: Samples() for engine in engines}
    stopped = False
    try:
        for number in range(1, rounds + 1):
            for name, variant in list(turns) if number % 2 else list(reversed(turns)):
                title = f"{job.name}, round {number}: {name} {variant.label}".rstrip()
                try:
                    measured = checked(job, variant.measure(number))
                except Failure as failure:
                    say(f"{title}: {failure}")
                    samples[name].drop(variant.label)
                    variant.close()
                    turns.remove((name, variant))
                    continue
                samples[name].add(variant.label, measured)
                say(f"{title}: " + ", ".join(f"{f.key} {measured[f.key]:.1f} {f.unit}" for f in job.figures))
            if number == 1:
                for name, variant in leave_out(job, samples, turns):
                    say(f"{job.name}: {name} {variant.label} is behind, and asked no more")
                    variant.close()
    except KeyboardInterrupt:
        stopped = True
    finally:
        for _, variant in turns:
            variant.close()
    return samples, stopped


def leave_out(job, samples, turns):
    """Takes the hopeless ones out of `turns`, and gives them."""
    out = []
    for name, sample in samples.items():
        firsts = {label: {key: values[0] for key, values in keys.items()} for label, keys in sample.values.items()}
        out += [turn for turn in turns if turn[0] == name and turn[1].label in hopeless(job, firsts)]
    turns[:] = [turn for turn in turns if turn not in out]
    return out
