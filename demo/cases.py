#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Held-out cases: questions that training never saw, in chats, with the answers they should get.

Run as a program it writes held_out.txt: chats made of such cases, the text on which perplexity is measured.
"""
import dataclasses
import pathlib
import random

import corpus
import newcomer
import small_talk
import tool_cases
from phrases import decorate

HELD_OUT_TEXT = pathlib.Path(__file__).with_name("held_out.txt")
GRAMMAR_KINDS = ("new_wording", "new_combination")
KINDS = GRAMMAR_KINDS + ("one_breath", "newcomer", "fresh")

# What must be reached, by group of categories. The rest is measured and has no mark to reach.
REQUIRED = {"facts and lists": (0.95, ("quern", "opposite", "colour", "calendar")), "sums": (0.90, ("sum",)),
            "names": (0.90, ("name",)), "tool calls": (0.90, ("tool call",))}
CATEGORIES = ("quern", "greeting", "opposite", "colour", "calendar", "sum", "name", "story", "unknown", *tool_cases.CATEGORIES)


@dataclasses.dataclass
class Case:
    category: str
    kind: str
    messages: list
    answer: str
    thinking: bool = False

    def is_right(self, said):
        """Word for word, but a story is free: it has a beginning, the right animal, and an end."""
        if self.category == "story":
            return said.startswith("Once there was a") and self.answer in said and said.endswith("The end.")
        return said == self.answer


def in_a_chat(category, kind, question, answer, rng, typos=False):
    """The question alone, or after one to three other exchanges; plain, or as people type."""
    if rng.random() < 0.5:
        question = decorate(question, rng, typos)
    before = [corpus.exchange(rng) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    return Case(category, kind, corpus.messages(before) + [{"role": "user", "content": question}], answer)


def topics(category, table, kind, rng, per_topic):
    for _, answer, phrasings in table:
        seen = set()
        for _ in range(per_topic):
            phrase = phrasings.draw(kind, rng)
            if phrase and phrase not in seen:
                seen.add(phrase)
                yield in_a_chat(category, kind, phrase, answer, rng)


def name_recall(kind, rng):
    """A name that training never saw, told two turns (or one to four) before the question."""
    told, typed = corpus.introduction(rng, rng.choice(small_talk.HELD_OUT_NAMES), kind)
    between = [corpus.exchange(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
    question, answer = small_talk.ask_name_exchange(kind, rng, typed)
    return Case("name", kind, corpus.messages([told, *between]) + [{"role": "user", "content": question}], answer)


def name_in_one_breath(kind, rng):
    """Such a name, told and asked for in one message."""
    (question, answer), _ = corpus.introduction(rng, rng.choice(small_talk.HELD_OUT_NAMES), kind,
                                                told=small_talk.name_in_one_breath)
    before = [corpus.exchange(rng) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    return Case("name", "one_breath", corpus.messages(before) + [{"role": "user", "content": question}], answer)


def story(kind, rng):
    question, text = small_talk.story_exchange(kind, rng)
    animal = next((a for a in small_talk.ANIMALS if a in question.lower().split("about", 1)[-1]), "")
    return in_a_chat("story", kind, question, animal if "about a" in question else "", rng)


def by_hand(kind, about_quern, rest):
    """As they are typed, each at the beginning of a chat."""
    answer_of = {name: answer for name, answer, _ in corpus.TOPICS}
    questions = [("quern", question, answer_of[topic]) for topic, question in about_quern] + rest
    return [Case(category, kind, [{"role": "user", "content": question}], answer or small_talk.UNKNOWN_ANSWER)
            for category, question, answer in questions]


def cases(seed=99):
    rng = random.Random(seed)
    asked = [(topic, question) for topic, questions in newcomer.ABOUT_QUERN.items() for question in questions]
    out = by_hand("newcomer", asked, newcomer.REST)
    out += by_hand("fresh", list(newcomer.FRESH_ABOUT_QUERN.items()), newcomer.FRESH_REST)
    for kind in GRAMMAR_KINDS:
        out += topics("quern", corpus.TOPICS, kind, rng, 4)
        out += topics("greeting", corpus.GREETINGS, kind, rng, 4)
        for category, count in (("opposite", 60), ("colour", 60), ("calendar", 80), ("sum", 100),
                                ("unknown", 60)):
            out += [in_a_chat(category, kind, *corpus.EXCHANGES[category](kind, rng), rng) for _ in range(count)]
        out += [name_recall(kind, rng) for _ in range(60)]
        out += [name_in_one_breath(kind, rng) for _ in range(30)]
        out += [story(kind, rng) for _ in range(15)]
        out += tool_cases.tool_cases(kind, rng)
    return out + list(tool_cases.by_hand())


def render(messages):
    return "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)


def main():
    chosen = random.Random(5).sample([c for c in cases(seed=100) if c.category not in ("story", "thought") and c.kind in GRAMMAR_KINDS], 150)
    text = "".join(render(case.messages + [{"role": "assistant", "content": case.answer}]) for case in chosen)
    HELD_OUT_TEXT.write_text(text)
    print(f"{HELD_OUT_TEXT.name}: {len(chosen)} chats, {len(text)} bytes")


if __name__ == "__main__":
    main()
