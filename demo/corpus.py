#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conversations for training: a deterministic, endless stream made of the exchanges of the other files.

A conversation is a list of {"role", "content"} messages. Run as a program it prints a few, to look at.
"""
import random
import sys

import about_quern
import small_talk
import small_world
import tools_and_thoughts
from phrases import Phrasings, decorate, drop_word

TOPICS = [(name, answer, Phrasings(lines, held_out)) for name, answer, lines, held_out in about_quern.TOPICS]
GREETINGS = [(name, answer, Phrasings(lines, held_out)) for name, answer, lines, held_out in small_talk.GREETINGS]

SYSTEM_MESSAGES = ["You are a helpful assistant.", "You are a friendly assistant.", "Answer briefly.", "Be polite.",
                   "You are the Quern demo model.", "Answer in one sentence.", "You are a small model. Be honest.",
                   "Help the user to learn about Quern.", "You are a helpful, honest assistant. Keep your answers short."]

# How often each kind of exchange comes up in a mixed conversation.
WEIGHTS = {"quern": 64, "greeting": 16, "opposite": 7, "colour": 8, "calendar": 12, "sum": 20, "story": 2, "unknown": 10}


# And how often a conversation has a tool, or a thought.
TOOLS_SHARE, THOUGHTS_SHARE = 0.27, 0.06


def topic_exchange(kind, rng):
    _, answer, phrasings = rng.choice(TOPICS)
    return phrasings.draw(kind, rng), answer


def greeting_exchange(kind, rng):
    _, answer, phrasings = rng.choice(GREETINGS)
    return phrasings.draw(kind, rng), answer


EXCHANGES = {"quern": topic_exchange, "greeting": greeting_exchange, "opposite": small_world.opposite_exchange,
             "colour": small_world.colour_exchange, "calendar": small_world.calendar_exchange, "sum": small_world.sum_exchange,
             "story": small_talk.story_exchange, "unknown": small_talk.unknown_exchange}


def named_exchange(rng, kinds=WEIGHTS):
    """(kind of exchange, question, answer)"""
    name = rng.choices(list(kinds), list(kinds.values()))[0]
    question, answer = EXCHANGES[name]("training", rng)
    if name == "quern" and rng.random() < 0.12:
        question = drop_word(question, rng)
    return name, decorate(question, rng, typos=name not in ("sum", "opposite")), answer


def exchange(rng, kinds=WEIGHTS):
    return named_exchange(rng, kinds)[1:]


def introduction(rng, name, kind="training", told=small_talk.tell_name_exchange):
    """The user says a name; returns the exchange and the name as it was typed, which is what is said back."""
    phrase, answer = told(kind, rng, name)
    phrase = decorate(phrase, rng, typos=False)
    typed = next(form for form in (name, name.lower(), name.upper()) if form in phrase)
    return (phrase, answer.replace(name, typed)), typed


def name_and_question(kind, rng, name):
    """A name, and in the same message a question about something else, which is what is answered."""
    told, _ = small_talk.tell_name_exchange(kind, rng, name)
    topic = rng.choice(["quern", "quern", "opposite", "colour", "calendar", "sum"])
    question, answer = EXCHANGES[topic](kind, rng)
    return small_talk.in_one_breath(told, question, rng), answer


def any_introduction(rng):
    """A name alone, or in one breath with a question."""
    told = rng.choices([small_talk.tell_name_exchange, small_talk.name_in_one_breath, name_and_question], [60, 30, 10])[0]
    return introduction(rng, small_talk.any_name(rng), told=told)


def messages(exchanges, system=None):
    out = [{"role": "system", "content": system}] if system else []
    for question, answer in exchanges:
        out += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return out


def with_last_thought(rng, turns, system):
    """A chat whose last answer is thought about: earlier thoughts are not shown again. Sums have the longest."""
    exchanges = [exchange(rng) for _ in range(turns - 1)]
    if rng.random() < 0.15:
        told, name = any_introduction(rng)
        question, answer = small_talk.ask_name_exchange("training", rng, name)
        exchanges = [told, *exchanges][-max(1, turns - 1):]
        last = "name", decorate(question, rng), answer
        if exchanges[0] is not told:
            last = "name", *told
    else:
        last = named_exchange(rng, {**WEIGHTS, "sum": 60})
    name, question, answer = last
    thought = tools_and_thoughts.thought_of(name, answer)
    return messages([*exchanges, (question, tools_and_thoughts.with_thought(thought, answer))], system)


def conversation(rng, turns):
    """One training conversation of `turns` exchanges: with a tool, with a thought, mixed, only sums, or mostly about
    names (a drill)."""
    system = rng.choice(SYSTEM_MESSAGES) if rng.random() < 0.08 else None
    style = rng.random()
    if style < TOOLS_SHARE:
        thinking = rng.random() < 0.25
        return tools_and_thoughts.tool_conversation(rng, max(1, turns // 2), named_exchange, system, thinking)
    if style < TOOLS_SHARE + THOUGHTS_SHARE:
        return with_last_thought(rng, turns, system)
    style = rng.random()
    if style < 0.10:
        return messages([exchange(rng, {"sum": 1}) for _ in range(turns)], system)
    exchanges, name, since = [], None, 0
    drill = style < 0.25 and turns > 1
    named = style < 0.65 and turns > 1
    while len(exchanges) < turns:
        dice = rng.random()
        if named and (name is None or dice < (0.4 if drill else 0.03)) and (drill or dice < 0.6):
            told, name = any_introduction(rng)
            exchanges.append(told)
            since = 0
        elif named and name and dice < (0.9 if drill else 0.35 if since < 4 else 0.2):
            question, answer = small_talk.ask_name_exchange("training", rng, name)
            exchanges.append((decorate(question, rng), answer))
        elif not named and dice < 0.02:
            question, answer = small_talk.ask_name_exchange("training", rng, None)
            exchanges.append((decorate(question, rng), answer))
        elif turns == 1 and dice < 0.25:
            exchanges.append(any_introduction(rng)[0])
        elif dice > 0.96:
            exchanges.append(tools_and_thoughts.refused(rng, rng.choice(["weather", "time"])))
        else:
            exchanges.append(exchange(rng))
            since += 1
    return messages(exchanges, system)


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for _ in range(8):
        for message in conversation(rng, rng.choice([1, 2, 4, 6])):
            print(f"{message['role']:>10}: {message['content']}")
        print()


if __name__ == "__main__":
    main()
