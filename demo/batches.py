# SPDX-License-Identifier: MIT
"""Conversations packed into rows of tokens. A batch depends on its number only, so training resumes anywhere."""
import random

import torch

from corpus import conversation

# Share of batches by row length. Most chats are short; some fill the whole context, so that long ones work too.
ROW_LENGTHS = {192: 0.62, 320: 0.29, 512: 0.06, 1024: 0.03}
# The questions are context and not the lesson; a little weight keeps the model able to read and continue them.
PROMPT_WEIGHT = 0.1
THOUGHT, THOUGHT_LENGTH = "<think>\n", 2
# A city or a name is copied: few tokens among many that are the same in every such answer.
COPIES = {"<tool_call>": 3.0, "Your name is ": 2.0, "Nice to meet you, ": 2.0}


def encode(vocabulary, messages, prompt_weight=PROMPT_WEIGHT):
    """Ids of a conversation and, for each id, how much its prediction counts."""
    ids, weights = [], []
    for message in messages:
        piece_ids = vocabulary.message(message["role"], message["content"])
        if message["role"] == "assistant":
            opening = len(vocabulary.message("assistant"))
            weights += [prompt_weight] * opening
            if message["content"].startswith(THOUGHT):
                # The prompt has opened it; whether to think is no question to the model.
                weights += [0.0] * THOUGHT_LENGTH
            weight = max((weight for text, weight in COPIES.items() if text in message["content"]), default=1.0)
            weights += [weight] * (len(piece_ids) - len(weights) + len(ids) - 1) + [prompt_weight]
        else:
            weights += [prompt_weight] * len(piece_ids)
        ids += piece_ids
    return ids, weights


def draw(rng, length):
    """One conversation that fits; in long rows, one as long as the row."""
    if length <= 320:
        turns = rng.choice([1, 1, 2, 3, 3] if length == 192 else [2, 3, 4, 5, 6, 7])
    else:
        turns = length // 35
    return conversation(rng, turns)


def batch(vocabulary, seed, number, tokens):
    """ids, targets, weights, segments: each (rows, length). First fit, longest conversation first."""
    rng = random.Random(f"{seed}/{number}")
    length = rng.choices(list(ROW_LENGTHS), list(ROW_LENGTHS.values()))[0]
    rows = [[] for _ in range(max(1, tokens // length))]
    drawn, total = [], 0
    while total < tokens * 1.02:
        ids, weights = encode(vocabulary, draw(rng, length))
        ids, weights = ids[:length + 1], weights[:length + 1]
        drawn.append((ids, weights))
        total += len(ids)
    drawn.sort(key=lambda item: -len(item[0]))
    room = [length] * len(rows)
    for ids, weights in drawn:
        for row, left in enumerate(room):
            if len(ids) - 1 <= left:
                rows[row].append((ids, weights))
                room[row] -= len(ids) - 1
                break
    out = torch.zeros(3, len(rows), length, dtype=torch.long)
    weight = torch.zeros(len(rows), length)
    for r, row in enumerate(rows):
        at = 0
        for segment, (ids, weights) in enumerate(row, 1):
            end = at + len(ids) - 1
            out[0, r, at:end] = torch.tensor(ids[:-1])
            out[1, r, at:end] = torch.tensor(ids[1:])
            out[2, r, at:end] = segment
            weight[r, at:end] = torch.tensor(weights[1:])
            at = end
    return out[0], out[1], weight, out[2]
