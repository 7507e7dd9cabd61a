# SPDX-License-Identifier: MIT
"""A tiny phrase grammar: one line of text that stands for many ways to say the same thing.

    [a|b|]     one of the alternatives, which may nest or be empty
    <name>     a shared fragment from FRAGMENTS
    {slot}     filled in by the caller

Phrasings are what the model has to generalize over, so two kinds are kept away from training and used by the
evaluation only: whole lines that a topic lists as held out ("new wording"), and a fixed fraction, chosen by hash,
of the phrasings that the training lines can produce ("new combination").
"""
import re
import zlib

FRAGMENTS = {
    "what_is": "[What is|What's|What exactly is|What is|So what is]",
    "tell": "[Tell me|Can you tell me|Could you tell me|Please tell me|Do you know|I want to know"
            "|I would like to know|I'd like to know|Please explain|Explain|Can you explain|Could you explain|I wonder"
            "|I am trying to understand|Help me understand|I want to understand|I have no idea|Let me know|Say"
            "|Would you tell me|Are you able to tell me|I need to know|I do not know|Please say]",
    "how_do_i": "[How do I|How can I|How do you|How does one|How would I|How should I"
                "|What do I do to|What command do I use to|Which command do I need to"
                "|Tell me how to|Show me how to|Can you show me how to|Please tell me how to|I want to|I need to|I would like to"
                "|How to|Explain how to|What is the way to|What is the command to|Which command do I use to|How could I"
                "|How does someone|What must I do to|Can you help me to|I am trying to|Is it hard to|What should I run to]",
    "describe": "[Describe|Please describe|Tell me about|Say something about|Can you tell me about|Talk about"
                "|Give me a description of|Tell me more about|Explain|What should I know about|Inform me about|Teach me"
                " something about|I want to learn about|Give me the facts about|I have a question about|I am curious about"
                "|Could you describe|What is there to know about|Tell me something about|Let us talk about]",
}

HELD_OUT_PERCENT = 8


def parse(line):
    """A line as a nested list: a sequence of strings and ("choice", [sequences])."""
    while "<" in line:
        line = re.sub(r"<(\w+)>", lambda m: FRAGMENTS[m[1]], line)
    sequence, position = _sequence(line, 0)
    assert position == len(line), f"unbalanced bracket in: {line}"
    return sequence


def _sequence(line, position):
    parts = []
    while position < len(line) and line[position] not in "|]":
        if line[position] == "[":
            choices = []
            while line[position] != "]":
                choice, position = _sequence(line, position + 1)
                choices.append(choice)
            parts.append(("choice", choices))
            position += 1
        else:
            end = position
            while end < len(line) and line[end] not in "[|]":
                end += 1
            parts.append(line[position:end])
            position = end
    return parts, position


def sample(sequence, rng):
    """One random phrasing of a parsed line."""
    return re.sub(r" {2,}", " ", _join(sequence, rng)).strip()


def _join(sequence, rng):
    return "".join(part if isinstance(part, str) else _join(rng.choice(part[1]), rng) for part in sequence)


def is_held_out(phrase):
    """Whether the hash sets this phrasing aside; case and punctuation do not make a phrasing new."""
    plain = re.sub(r"[^a-z0-9{} ]", "", phrase.lower())
    return zlib.crc32(plain.encode()) % 100 < HELD_OUT_PERCENT


class Phrasings:
    """The lines of one topic, with their held-out part."""

    def __init__(self, lines, held_out_lines):
        self.lines = [parse(line) for line in lines]
        self.held_out_lines = [parse(line) for line in held_out_lines]

    def training(self, rng):
        for _ in range(50):
            phrase = sample(rng.choice(self.lines), rng)
            if not is_held_out(phrase):
                return phrase
        raise ValueError(f"nearly all phrasings are held out: {phrase}")

    def new_combination(self, rng):
        """A phrasing from the training lines that training never produces, or None if there are too few."""
        for _ in range(2000):
            phrase = sample(rng.choice(self.lines), rng)
            if is_held_out(phrase):
                return phrase
        return None

    def new_wording(self, rng):
        return sample(rng.choice(self.held_out_lines), rng)

    def draw(self, kind, rng):
        return getattr(self, kind)(rng)


LEADS = ["Hi! ", "Hello, ", "Hey, ", "Hi, ", "Hello! ", "Please: ", "Quick question: ", "So, ", "OK, ", "Okay, ", "Well, ",
         "One more question: ", "Another question: ", "Excuse me, ", "I have a question. ", "Now, ", "And ", "Also, ",
         "Sorry, ", "Question: ", "I wonder: ", "A friend asks: ", "Can you help me? ", "Next question: ", "Just wondering, ",
         "Help me with this: ", "One thing: ", "Do you know this? ", "Oh, ", "Wait, ", "Alright, ", "Please, ", "By the way, ", "Thanks! ", "Thanks. ", "Great. ", "Good. ", "Hmm, ", "I am curious: ", "Let me ask: "]
TAILS = [", please", " please", ", thanks", "? Thanks", "? Thank you", " again", " exactly", " then", ", friend", ", I wonder", " really",
         "? I would like to know", "? I need to know", "? Please answer", "? Tell me", " now", ", my friend", ", by the way", " in short"]


def decorate(phrase, rng, typos=True):
    """How people really type: a word before or after, no capitals, no question mark, a slip of the finger."""
    if rng.random() < 0.15:
        body = phrase.rstrip("?.!")
        phrase = body + rng.choice(TAILS) + phrase[len(body):]
    if rng.random() < 0.25:
        lead = rng.choice(LEADS)
        if lead[-2] not in ".!" and not phrase.startswith(("I ", "I'", "Quern")) and rng.random() < 0.7:
            phrase = phrase[0].lower() + phrase[1:]
        phrase = lead + phrase
    dice = rng.random()
    if dice < 0.25:
        phrase = phrase.lower()
    elif dice < 0.35:
        phrase = phrase[0].lower() + phrase[1:]
    elif dice < 0.37:
        phrase = phrase.upper()
    dice = rng.random()
    if dice < 0.22:
        phrase = phrase.rstrip("?.!")
    elif dice < 0.24:
        phrase = phrase.rstrip("?.!") + rng.choice(["??", "!", " ?", "...", "?!"])
    if typos and rng.random() < 0.04:
        phrase = slip(phrase, rng)
    return phrase


LITTLE_WORDS = set("a an the is are do does to of it i you can in for my me this please that be".split())


def drop_word(phrase, rng):
    """The phrase without one of its little words: the other words have to carry the meaning."""
    words = phrase.split(" ")
    little = [at for at, word in enumerate(words) if word.lower() in LITTLE_WORDS]
    if len(words) < 5 or not little:
        return phrase
    del words[rng.choice(little)]
    return " ".join(words)


def slip(phrase, rng):
    """One letter left out, doubled or swapped inside a longer word."""
    words = [m for m in re.finditer(r"[A-Za-z]{5,}", phrase)]
    if not words:
        return phrase
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    return rng.choice([phrase[:at] + phrase[at + 1:],
                       phrase[:at] + phrase[at] + phrase[at:],
                       phrase[:at] + phrase[at + 1] + phrase[at] + phrase[at + 2:]])
