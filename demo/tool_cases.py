# SPDX-License-Identifier: MIT
"""Held-out cases with a tool or a thought: cities that training never saw, wordings it never had, tools as clients
describe them. The prompt is written as the chat template writes it."""
import dataclasses

import corpus
from tools_and_thoughts import ASK_CITY, HELD_OUT_CITIES, NO_CITY, Tool, any_tool, offer, refused, result as returned_by, tool_exchange

CATEGORIES = ("tool call", "tool result", "no tool needed", "thought")

# Typed by hand, for tools that clients might offer; nothing was changed for them.
USUAL = {
    "weather": Tool("weather", "get_weather", "city", "Get the current weather in a given city", ", unit"),
    "time": Tool("time", "get_time", "city", "Returns the local time in a city"),
}
FRESH_CALLS = [
    ("weather", "whats the weather in {city}", "Lisbon"), ("weather", "What's the weather like in {city} today?", "Barcelona"),
    ("weather", "hey, is it raining in {city}?", "Glasgow"), ("weather", "Weather {city}?", "Ottawa"),
    ("weather", "do I need a jacket in {city} today", "Melbourne"), ("weather", "tell me the weather for {city} please", "Salt Lake City"),
    ("weather", "how hot is it in {city} right now?", "Phoenix"), ("weather", "I'm in {city}, what's the weather?", "Málaga"),
    ("time", "what time is it in {city}?", "Taipei"), ("time", "whats the current time in {city}", "Kathmandu"),
    ("time", "Hi! Can you tell me what time it is in {city}?", "Reykjavik"), ("time", "local time in {city} please", "New Orleans"),
]
FRESH_RESULTS = [
    ("weather", "What's the weather in {city}?", "Lisbon", '{"temperature": 21, "condition": "sunny"}', "It is sunny in Lisbon, 21 degrees."),
    ("weather", "How is the weather in {city}?", "Dhaka", "rainy, 28 degrees", "It is rainy in Dhaka, 28 degrees."),
    ("weather", "Is it cold in {city}?", "Calgary", '{"city": "Calgary", "weather": "snowy", "temperature": -9}',
     "It is snowy in Calgary, -9 degrees."),
    ("weather", "weather in {city}?", "Marseille", '{"weather": "windy"}', "It is windy in Marseille."),
    ("time", "What time is it in {city}?", "Sapporo", "14:35", "It is 14:35 in Sapporo."),
    ("time", "tell me the time in {city}", "Bogotá", '{"time": "08:05"}', "It is 08:05 in Bogotá."),
]


@dataclasses.dataclass
class ToolCase:
    category: str
    kind: str
    messages: list
    answer: str
    thinking: bool = False  # the prompt opens a thought

    def is_right(self, said):
        """Word for word; before a thought's answer there is a line of thought, which is free."""
        if not self.thinking:
            return said == self.answer
        thought, end, answer = said.partition("\n</think>\n\n")
        return bool(end and thought.strip()) and "\n" not in thought and answer == self.answer


def call(kind, rng):
    about = rng.choice(["weather", "weather", "time"])
    tool = any_tool(rng, about, kind)
    before = []
    if kind == "new_wording" and rng.random() < 0.2:
        before, _ = tool_exchange(rng, tool)
    part, _ = tool_exchange(rng, tool, kind, again=bool(before))
    return ToolCase("tool call", kind, [offer([tool]), *before, part[0]], part[1]["content"])


def result(kind, rng):
    tool = any_tool(rng, rng.choice(["weather", "weather", "time"]), kind)
    part, _ = tool_exchange(rng, tool, kind)
    return ToolCase("tool result", kind, [offer([tool]), *part[:3]], part[3]["content"])


def not_needed(kind, rng):
    """What has nothing to do with the tool; what no tool of this kind is there for; what lacks the city."""
    about = rng.choice(["weather", "time"])
    tool, dice = any_tool(rng, about, kind), rng.random()
    if dice < 0.6:
        question, answer = corpus.EXCHANGES[rng.choice(["opposite", "colour", "calendar", "sum", "quern", "greeting", "unknown"])](kind, rng)
    elif dice < 0.8:
        question, answer = refused(rng, "time" if about == "weather" else "weather", kind)
    elif dice < 0.9 or kind != "new_wording":
        question, answer = refused(rng, about, kind)
        return ToolCase("no tool needed", kind, [{"role": "user", "content": question}], answer)
    else:
        tool, question, answer = any_tool(rng, "weather", kind), NO_CITY.draw(kind, rng), ASK_CITY
    if question is None:
        return not_needed(kind, rng)
    return ToolCase("no tool needed", kind, [offer([tool]), {"role": "user", "content": question}], answer)


def thought(kind, rng):
    """Sums mostly, since their thoughts say more than the kind of question."""
    topic = rng.choice(["sum", "sum", "sum", "opposite", "colour", "calendar", "unknown", "quern"])
    question, answer = corpus.EXCHANGES[topic](kind, rng)
    if question is None:
        return thought(kind, rng)
    return ToolCase("thought", kind, [{"role": "user", "content": question}], answer, thinking=True)


def by_hand():
    for about, question, city in FRESH_CALLS:
        assert city in HELD_OUT_CITIES
        asked = [offer([USUAL[about]]), {"role": "user", "content": question.replace("{city}", city)}]
        yield ToolCase("tool call", "fresh", asked, USUAL[about].call(city))
    for about, question, city, returned, answer in FRESH_RESULTS:
        asked = [offer([USUAL[about]]), {"role": "user", "content": question.replace("{city}", city)},
                 {"role": "assistant", "content": USUAL[about].call(city)},
                 returned_by(returned)]
        yield ToolCase("tool result", "fresh", asked, answer)


def tool_cases(kind, rng):
    for make, count in ((call, 60), (result, 60), (not_needed, 40), (thought, 60)):
        yield from (make(kind, rng) for _ in range(count))
