# SPDX-License-Identifier: MIT
"""The table, in Markdown: a row for each figure, a column for each engine."""

OURS = "Quern"


def head(names):
    return f"| work | {' | '.join(names)} | ÷ best peer | goal | |\n" + "|---" * (len(names) + 4) + "|"


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def ratio(figure, samples):
    """Quern's value ÷ the best peer's, or None where one of them is missing. `samples`: {engine name: Samples}."""
    best = {name: sample.best(figure) for name, sample in samples.items()}
    ours, peers = best.pop(OURS, None), [found[0] for found in best.values() if found]
    return ours[0] / figure.best(peers) if ours and peers else None


def cell(found):
    if not found:
        return "–"
    value, label = found
    return f"{number(value)} ({label})" if label else number(value)


def row(figure, names, samples):
    quotient = ratio(figure, samples)
    return "| " + " | ".join([
        f"{figure.work}, {figure.unit}",
        *(cell(samples[name].best(figure)) for name in names),
        "–" if quotient is None else f"{quotient:.2f}",
        f"{'≤' if figure.less_is_better else '≥'} {figure.goal:g}",
        "" if quotient is None or figure.reached(quotient) else "missed",
    ]) + " |"
