# SPDX-License-Identifier: MIT
"""Conversations with a tool, and thoughts, as the chat template writes them.

One tool, get_weather, tells the weather of a city, and another, get_time, the time; descriptions vary, and most cities
are invented, so that the model copies what it reads. Messages are in the form of the template (write_gguf.py):
a turn of the user may be the result of a call, and an answer may begin with a thought.
"""
import json
import re

from phrases import Phrasings, decorate
from small_talk import UNKNOWN_ANSWER, syllable_name

CITIES = """Paris, London, Berlin, Rome, Madrid, Vienna, Prague, Warsaw, Oslo, Stockholm, Helsinki, Copenhagen, Dublin,
Edinburgh, Brussels, Amsterdam, Geneva, Zürich, Basel, Milan, Naples, Venice, Florence, Athens, Istanbul, Ankara, Cairo,
Nairobi, Lagos, Accra, Tunis, Algiers, Cape Town, Johannesburg, Dakar, Tokyo, Osaka, Kyoto, Seoul, Beijing, Shanghai,
Hong Kong, Singapore, Bangkok, Hanoi, Jakarta, Manila, Delhi, Mumbai, Chennai, Karachi, Tehran, Baghdad, Dubai, Moscow, Kiev,
Riga, Vilnius, Tallinn, Budapest, Bucharest, Sofia, Belgrade, Zagreb, New York, Boston, Chicago, Houston, Dallas, Denver,
Seattle, Portland, San Francisco, San Diego, Los Angeles, Las Vegas, Miami, Toronto, Montreal, Vancouver, Mexico City,
Havana, Lima, Quito, Santiago, São Paulo, Rio de Janeiro, Buenos Aires, Caracas, Sydney, Perth, Auckland, Munich, München,
Hamburg, Cologne, Köln, Frankfurt, Dresden, Leipzig, Lyon, Nice, Bordeaux, Turin, Seville, Porto""".replace("\n", " ").split(", ")

HELD_OUT_CITIES = """Lisbon, Barcelona, Melbourne, Nagoya, Kathmandu, Reykjavik, Marseille, Valencia, Glasgow, Liverpool, Atlanta,
Phoenix, Detroit, Minneapolis, Ottawa, Calgary, Bogotá, Montevideo, Brasília, Salvador, Casablanca, Addis Ababa, Kampala,
Lahore, Dhaka, Colombo, Taipei, Sapporo, Wellington, Brisbane, Málaga, Düsseldorf, Nürnberg, Gdańsk, Bratislava, Ljubljana,
Sarajevo, San Antonio, New Orleans, Salt Lake City, Puerto Rico, Kuala Lumpur, Tel Aviv, Saint Petersburg""".replace("\n", " ").split(", ")

FIRST_WORDS = ["New", "San", "Santa", "Port", "Saint", "Los", "La", "Las", "Old", "Fort", "Mount", "Bad", "El", "North", "Upper"]

CONDITIONS = """sunny, cloudy, rainy, windy, foggy, snowy, stormy, clear, dry, wet, hot, cold, warm, mild, humid, overcast, icy, cool,
partly cloudy, mostly sunny, very windy, quite warm""".replace("\n", " ").split(", ")

WEATHER = Phrasings(
    ["<what_is> the weather [like |][today |now |right now |]in {city}[ today| now| right now| at the moment|]?",
     "How is the weather [today |now |]in {city}[ today| now| right now|]?", "[Weather|The weather|And the weather] in {city}[ now| today|]?",
     "<tell> [the weather|what the weather is|how the weather is|about the weather] in {city}[ now| today|].",
     "Is it [sunny|raining|cold|warm|hot|snowing|windy|nice] in {city}[ now| today|]?", "Does it [rain|snow] in {city}[ now| today|]?",
     "<what_is> the temperature in {city}[ now| today|]?", "How [warm|cold|hot] is it in {city}[ now| today|]?",
     "Do I need [an umbrella|a coat|a hat] in {city}[ today|]?", "[Check|Look up|Get|Find|Show me|Give me|Report] the weather [in|for|of] {city}[ now|].",
     "I am [going to|in|travelling to|on the way to] {city}. [What is|How is] the weather[ there| like| like there|]?",
     "{city}: [what is the weather|how is the weather|weather]?", "What [about|is] the weather in {city}?",
     "What does the weather [look like|do] in {city}?", "Will it [rain|snow] in {city}[ today| tomorrow|]?",
     "[Use|Ask|Call] the [tool|function] for the weather in {city}."],
    ["Could you check what the weather is like in {city}?", "I fly to {city} tomorrow. How is the weather there?",
     "What sort of weather do they have in {city}?", "Can you find out the weather in {city}?", "Is the weather good in {city}?"])

CLOCK = Phrasings(
    ["What time is it [now |]in {city}[ now| right now| at the moment|]?", "<what_is> the [time|local time|current time] in {city}[ now|]?",
     "[The time|Time|And the time|Local time] in {city}[ now|]?", "<tell> [the time|what time it is|how late it is] in {city}[ now|].",
     "How late is it in {city}[ now|]?", "[Check|Look up|Get|Find|Show me|Give me] the [time|current time|local time] in {city}.",
     "Is it [late|early|morning|night|evening] in {city}[ now|]?", "I am [calling|in|travelling to] {city}. What time is it[ there|]?",
     "{city}: [what time is it|what is the time|time]?", "What does the clock say in {city}?"],
    ["Could you check the time in {city}?", "My friend lives in {city}. What time is it there?", "Do you know how late it is in {city}?"])

AGAIN = Phrasings(
    ["[And|What about|How about|And what about|And how about|Now|The same for|And now|Also] [in |]{city}?", "{city}?", "And {city}[, please|]?"],
    ["Same question for {city}.", "And how is it in {city}?"])

NO_CITY = Phrasings(
    ["[What is|What's|How is] the weather[ like|][ today| now| tomorrow|]?", "Is it [raining|cold|warm|sunny] [outside|today|now]?",
     "[Tell me|Check|Get|Look up] the weather[ now| today|]."],
    ["Could you check the weather for me?", "What is the weather like outside?"])

ASK_CITY = "In which city?"
FAILED = "The tool did not answer."


class Tool:
    """What the template shows of a tool: its name, its parameters and its description."""

    def __init__(self, about, name, parameter, description, more=""):
        self.about, self.name, self.parameter, self.description, self.more = about, name, parameter, description, more

    def shown(self):
        return f"{self.name}({self.parameter}{self.more})" + (f": {self.description}" if self.description else "") + "\n"

    def call(self, city):
        arguments = {"name": self.name, "arguments": {self.parameter: city}}
        return f"<tool_call>\n{json.dumps(arguments, ensure_ascii=False)}\n</tool_call>"


NAMES = {"weather": "get_weather", "time": "get_time"}
DESCRIPTIONS = {
    "weather": Phrasings(["[Get|Gets|Returns|Look up|Tells|Fetch|Find|Shows|] [the |][current |present |]weather [in|of|for|at] [a|the|a given|the given|one] "
                          "[city|place|location|town][ now|][.|]", "[Weather|Current weather|The weather report|Temperature and sky] [of|for|in] a "
                          "[city|place|town][.|]", "What the weather is like[.|]", "", ""],
                         ["Tells you how the weather is in some city.", "Query the weather service."]),
    "time": Phrasings(["[Get|Gets|Returns|Look up|Tells|Fetch|Find|Shows|] [the |][current |present |local |]time [in|of|for|at] [a|the|a given|the given|one] "
                       "[city|place|location|town][ now|][.|]", "A clock for [cities|places][.|]", "What time it is[.|]", "", ""],
                      ["Tells you how late it is in some city.", "Query the clock."]),
}
QUESTIONS = {"weather": WEATHER, "time": CLOCK}


def any_tool(rng, about, kind="training"):
    more = rng.choice([", unit", ", units", ", language", ", country", ", days"]) if rng.random() < 0.12 else ""
    return Tool(about, NAMES[about], "city", DESCRIPTIONS[about].draw("new_wording" if kind == "new_wording" else "training", rng), more)


def blend(rng):
    """The beginning of one city and the end of another, so that any letters come one after the other; some are doubled."""
    first, second = rng.choice(CITIES).split()[0], rng.choice(CITIES).split()[-1]
    city = first[:rng.randint(2, max(2, len(first) - 1))] + second[rng.randint(1, max(1, len(second) - 2)):].lower()
    if rng.random() < 0.3:
        at = rng.randrange(1, len(city))
        city = city[:at] + city[at] + city[at:]
    return city


def any_city(rng, kind="training"):
    if kind != "training":
        return rng.choice(HELD_OUT_CITIES)
    if rng.random() < 0.35:
        return rng.choice(CITIES)
    city = syllable_name(rng) if rng.random() < 0.5 else blend(rng)
    if rng.random() < 0.2:  # a long one: "Minneapolis"
        city += syllable_name(rng).lower()
    if rng.random() < 0.35:
        city = f"{rng.choice(FIRST_WORDS)} {city}" if rng.random() < 0.7 else f"{city} {syllable_name(rng)}"
    return city if city not in HELD_OUT_CITIES else any_city(rng)


def as_typed(phrase, city):
    return next(form for form in (city, city.lower(), city.upper(), city[0].lower() + city[1:]) if form in phrase)


def asked(phrasings, kind, rng, city, plain=False):
    """A question about a city, and the city as it was typed, which is what is looked up."""
    phrase = phrasings.draw(kind, rng).replace("{city}", city)
    if not plain:
        phrase = decorate(phrase, rng, typos=False)
    return phrase, as_typed(phrase, city)


def weather_result(rng, city):
    """What a weather service might return, and the answer that it leads to."""
    sky = rng.choice(CONDITIONS) if rng.random() < 0.8 else syllable_name(rng).lower()
    degrees = rng.randint(-15, 42)
    dice = rng.random()
    if dice < 0.06:
        return rng.choice(['{"error": "unknown city"}', "error: not found", '{"error": "timeout"}', "no data", "unknown", "error",
                           '{"error": "no data"}', "null", '{"status": "failed"}']), FAILED
    shown_sky = sky.capitalize() if sky in CONDITIONS and rng.random() < 0.2 else sky
    unit = rng.choice(["", "", "", " C", "°C", " degrees", "°"])
    number = degrees if unit == "" else f"{degrees}{unit}"
    pairs = [(rng.choice(["weather", "weather", "condition", "conditions", "sky", "description", "summary", "forecast"]), shown_sky),
             (rng.choice(["temperature", "temperature", "temp", "degrees", "temperature_c", "celsius"]), number)]
    answer = f"It is {sky} in {city}, {degrees} degrees."
    if dice < 0.20:
        del pairs[1]
        answer = f"It is {sky} in {city}."
    elif dice < 0.28:
        del pairs[0]
        answer = f"It is {degrees} degrees in {city}."
    if rng.random() < 0.6:
        if rng.random() < 0.2:
            pairs.reverse()
        if rng.random() < 0.35:
            pairs.insert(0, (rng.choice(["city", "location", "place"]), city))
        if rng.random() < 0.2:
            pairs.append(rng.choice([("humidity", rng.randint(10, 99)), ("wind", rng.randint(0, 60)), ("unit", "C")]))
        text = json.dumps(dict(pairs), ensure_ascii=False)
        return (text.replace('": ', '":').replace(", ", ",") if rng.random() < 0.2 else text), answer
    values = [str(value) if name not in ("temperature", "degrees") or unit else f"{value} degrees" for name, value in pairs]
    if rng.random() < 0.15:
        values.reverse()
    return rng.choice([", ", ", ", " ", " and ", "; "]).join(values) + rng.choice(["", "", "."]), answer


def time_result(rng, city):
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    if rng.random() < 0.05:
        return rng.choice(['{"error": "unknown city"}', "error", "no data"]), FAILED
    text = rng.choice([clock, clock, f'{{"time": "{clock}"}}', f'{{"time": "{clock}"}}', f'{{"city": "{city}", "time": "{clock}"}}',
                       f'{{"local_time": "{clock}"}}', f"It is {clock}.", f'{{"time": "{clock}", "zone": "UTC"}}'])
    return text, f"It is {clock} in {city}."


RESULTS = {"weather": weather_result, "time": time_result}


# ---- thoughts: one line, before the answer

SUM_ANSWER = re.compile(r"(\d+) ([+-]) (\d+) = -?\d+\.")


def thought_of(name, answer):
    """The thought before an answer of this kind of exchange."""
    sum_ = SUM_ANSWER.fullmatch(answer)
    if sum_:
        return f"A sum: {sum_[1]} {sum_[2]} {sum_[3]}."
    return {"quern": "A question about Quern.", "greeting": "Small talk.", "opposite": "They want the opposite of a word.",
            "colour": "A question about colours.", "calendar": "A question about days or months.", "name": "This is about their name.",
            "story": "They want a story.", "unknown": "I have not learnt this."}[name]


def call_thought(tool, city):
    return f"I ask {tool.name} about {city}."


RESULT_THOUGHT = "The tool has answered."


# ---- messages in the template's form

def with_thought(thought, text):
    return f"<think>\n{thought}\n</think>\n\n{text}"


def offer(tools, system=None):
    content = (system + "\n\n" if system else "") + "Tools:\n" + "".join(tool.shown() for tool in tools)
    return {"role": "system", "content": content}


def result(text):
    return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}


def tool_exchange(rng, tool, kind="training", again=False, plain=False):
    """The question, the call, the result and the answer, with the city as it was typed."""
    phrasings = AGAIN if again else QUESTIONS[tool.about]
    question, city = asked(phrasings, kind, rng, any_city(rng, kind), plain)
    returned, answer = RESULTS[tool.about](rng, city)
    return [{"role": "user", "content": question}, {"role": "assistant", "content": tool.call(city)}, result(returned),
            {"role": "assistant", "content": answer}], city


def refused(rng, about, kind="training"):
    """A question that a tool would answer, where none of its kind is offered."""
    question, _ = asked(QUESTIONS[about], kind, rng, any_city(rng, kind))
    return question, UNKNOWN_ANSWER


def tool_conversation(rng, turns, exchange, system=None, thinking=False):
    """A chat in which a tool is offered. `exchange(rng)` gives the others: (name, question, answer)."""
    about = rng.choice(["weather", "weather", "weather", "time"])
    other = "time" if about == "weather" else "weather"
    tools = [any_tool(rng, about)]
    if rng.random() < 0.12:
        tools.insert(rng.randrange(2), any_tool(rng, other))
    out, last = [offer(tools, system)], None
    for turn in range(turns):
        thinks = thinking and turn == turns - 1
        dice = rng.random()
        if dice < 0.62 or (last and dice < 0.75):
            again = last is not None and dice >= 0.62
            tool = last if again else rng.choice(tools)
            part, city = tool_exchange(rng, tool, again=again)
            if thinks:
                answer = part[3]
                answer["content"] = with_thought(RESULT_THOUGHT, answer["content"])
                if rng.random() < 0.6:
                    part[1]["content"] = with_thought(call_thought(tool, city), part[1]["content"])
                if rng.random() < 0.5:
                    part = part[:2]
                    part[1]["content"] = with_thought(call_thought(tool, city), tool.call(city))
            out += part
            last = tool
        elif dice < 0.78 and about == "weather" and not thinks:
            question = decorate(NO_CITY.draw("training", rng), rng)
            city = any_city(rng)
            reply = rng.choice([city, city, f"In {city}.", f"in {city}", f"{city}, please", f"I am in {city}.", city.lower()])
            tool = next(t for t in tools if t.about == "weather")
            typed = as_typed(reply, city)
            returned, answer = weather_result(rng, typed)
            out += [{"role": "user", "content": question}, {"role": "assistant", "content": ASK_CITY},
                    {"role": "user", "content": reply}, {"role": "assistant", "content": tool.call(typed)}, result(returned),
                    {"role": "assistant", "content": answer}]
        else:
            name, question, answer = exchange(rng)
            if len(tools) == 1 and rng.random() < 0.15:
                name, (question, answer) = "unknown", refused(rng, other)
            if thinks:
                answer = with_thought(thought_of(name, answer), answer)
            out += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return out
