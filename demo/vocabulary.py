#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The vocabulary: byte-level pair merges learnt from the corpus, and the encoder that applies them.

The kind is what GGUF calls "gpt2" with the "qwen2" pre-tokenizer: text is cut into words with the space in front,
single digits, and runs of punctuation; pairs never merge across a cut. Run as a program it writes vocabulary.json;
with --keep N the first N merges stay as they are, and only the others are learnt.
"""
import argparse
import collections
import functools
import json
import pathlib
import random

import regex

PIECES = 1024
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Tokens of their own too, but part of an answer's text.
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
SPLIT = regex.compile(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                      r"|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = regex.compile("|".join(map(regex.escape, MARKS)))
FILE = pathlib.Path(__file__).with_name("vocabulary.json")


def byte_letters():
    """The printable letter that stands for each byte in piece names: itself, or from 256 up for the unprintable."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, spare = {}, 256
    for byte in range(256):
        if byte in plain:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(spare)
            spare += 1
    return letters


LETTERS = byte_letters()


def learn(word_counts, merges_wanted, kept=()):
    """Merges in order: again and again the most frequent neighbouring pair becomes one piece."""
    words = [([LETTERS[b] for b in word.encode()], count) for word, count in sorted(word_counts.items())]
    merges = list(kept)
    for pair in merges:
        for pieces, _ in words:
            merge_in_place(pieces, pair)
    while len(merges) < merges_wanted:
        pairs = collections.Counter()
        for pieces, count in words:
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for pieces, _ in words:
            merge_in_place(pieces, best)
    return merges


def merge_in_place(pieces, pair):
    at = 0
    while at + 1 < len(pieces):
        if (pieces[at], pieces[at + 1]) == pair:
            pieces[at:at + 2] = [pair[0] + pair[1]]
        at += 1


class Vocabulary:
    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.pieces = [LETTERS[b] for b in range(256)] + [a + b for a, b in self.merges] + MARKS + CONTROL
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        self.bytes_of = {letter: byte for byte, letter in LETTERS.items()}
        self.end_of_text, self.start, self.end = (self.ids[name] for name in CONTROL)
        self.word = functools.lru_cache(maxsize=200_000)(self._word)

    @classmethod
    def load(cls, path=FILE):
        return cls(json.loads(path.read_text())["merges"])

    def _word(self, word):
        pieces = [LETTERS[b] for b in word.encode()]
        while len(pieces) > 1:
            pair = min(zip(pieces, pieces[1:]), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if pair not in self.ranks:
                break
            merge_in_place(pieces, pair)
        return [self.ids[piece] for piece in pieces]

    def encode(self, text):
        """Plain text to ids; control pieces are not recognized in text."""
        return [i for word in SPLIT.findall(text) for i in self.word(word)]

    def encode_rendered(self, text):
        """Text in which control pieces and marks stand for themselves, such as a chat written out by the template."""
        parts = regex.split("(" + "|".join(map(regex.escape, CONTROL + MARKS)) + ")", text)
        return [i for part in parts for i in ([self.ids[part]] if part in CONTROL + MARKS else self.encode(part))]

    def decode(self, ids):
        pieces = [self.pieces[i] for i in ids if self.pieces[i] not in CONTROL]
        data = b"".join(p.encode() if p in MARKS else bytes(self.bytes_of[c] for c in p) for p in pieces)
        return data.decode(errors="replace")

    def message(self, role, content=None):
        """The ids of one ChatML message; without content, the opening that asks for an answer."""
        opening = [self.start]
        if content is None:
            return opening + self.encode(role + "\n")
        return opening + self.encode_rendered(f"{role}\n{content}") + [self.end] + self.encode("\n")


def main():
    from corpus import conversation
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=int, default=0, metavar="N")
    keep = parser.parse_args().keep
    kept = Vocabulary.load().merges[:keep] if keep else []
    rng = random.Random(20)
    counts = collections.Counter()
    for _ in range(25_000):
        for message in conversation(rng, 3):
            for part in MARK.split(f"{message['role']}\n{message['content']}"):
                counts.update(SPLIT.findall(part))
    # Answers repeat word for word: the root keeps them from crowding out the many ways to ask.
    softened = {word: count ** 0.6 for word, count in counts.items()}
    merges = learn(softened, PIECES - 256 - len(MARKS) - len(CONTROL), kept)
    lines = ",\n".join(json.dumps(list(pair), ensure_ascii=False) for pair in merges)
    FILE.write_text('{"merges": [\n' + lines + "\n]}\n")
    print(f"{FILE.name}: {PIECES} pieces from {sum(counts.values())} words, {len(counts)} different")


if __name__ == "__main__":
    main()
