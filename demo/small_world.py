# SPDX-License-Identifier: MIT
"""Facts of a small world: opposites, colours, days, months, and sums of small numbers.

Every `*_exchange(kind, rng)` returns (question, answer); `kind` says where the phrasing comes from: "training",
"new_combination" or "new_wording" (see phrases.py).
"""
from phrases import Phrasings

OPPOSITES = """hot cold, big small, up down, left right, fast slow, old new, happy sad, day night, black white, open closed,
high low, hard soft, wet dry, full empty, light dark, long short, strong weak, rich poor, early late, good bad, clean dirty,
near far, thick thin, loud quiet, true false, yes no, in out, on off, first last, young old, heavy light, easy difficult,
win lose, buy sell, push pull, start stop, love hate, before after, above below, inside outside, always never, north south,
east west, front back, top bottom, sweet sour, smooth rough, wide narrow, deep shallow, right wrong, friend enemy,
question answer, summer winter, sharp blunt, brave afraid, begin end, give take, come go, laugh cry, tall short,
large little, warm cool, asleep awake, cheap expensive, simple complex, safe dangerous, alive dead, same different,
more less, many few, begin finish, remember forget, find lose, major minor, boy girl, man woman, king queen"""

COLOURS = """the sky:blue, the sea:blue, the ocean:blue, grass:green, a leaf:green, a tree:green, a frog:green, snow:white,
milk:white, a swan:white, salt:white, a tomato:red, a strawberry:red, blood:red, a cherry:red, a fire engine:red,
a lemon:yellow, a banana:yellow, the sun:yellow, butter:yellow, coal:black, the night:black, a raven:black, a crow:black,
an orange:orange, a carrot:orange, a pumpkin:orange, chocolate:brown, coffee:brown, wood:brown, a bear:brown,
an elephant:grey, a mouse:grey, a rain cloud:grey, a flamingo:pink, a pig:pink, a plum:purple, lavender:purple,
a cucumber:green, a rose:red, an egg:white, sand:yellow, gold:yellow, silver:grey, a cloud:white, paper:white"""

MIXES = """blue yellow green, red yellow orange, red blue purple, black white grey, red white pink"""

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen twenty").split()


def _opposites():
    """Each word once: for the few that would have two opposites, the first pair wins."""
    table = {}
    for pair in OPPOSITES.replace("\n", " ").split(","):
        left, right = pair.split()
        table.setdefault(left, right)
        table.setdefault(right, left)
    return table


OPPOSITE_OF = _opposites()
COLOUR_OF = dict(pair.strip().split(":") for pair in COLOURS.replace("\n", " ").split(","))
MIX_OF = [tuple(mix.split()) for mix in MIXES.split(",")]

OPPOSITE = Phrasings(
    ["<what_is> [the|an] opposite [of|to|for] [the word|] {w}?", "<tell> [the opposite|an opposite|the opposite word] [of|for|to] {w}.", "[Opposite of|The opposite of|And the opposite of|And] {w}?",
     "[Give|Name|Say|Find|Show] [me |][the|an] opposite of [the word|] {w}.", "What word [is the opposite of|means the opposite of|is opposite to] {w}?", "[Which|What] word is the [opposite|contrary] of {w}?",
     "{w} is the opposite of [what|which word]?", "What's the [opposite|contrary|antonym] of {w}?", "The opposite of {w} is[ what| ...|]?", "If [it|something] is not {w}, what is it?", "<tell> what the opposite of {w} is.",
     "I need the opposite of [the word|] {w}.", "<what_is> the [contrary|antonym] of {w}?", "[Antonym|Contrary|Opposite]: {w}?", "{w}: [opposite|the opposite]?", "[Not {w} but what|The contrary of {w}]?", "What do you call the opposite of {w}?", "[Think of|Say] a word that is opposite to {w}.", "[Which|What] word [contradicts|is contrary to] {w}?"],
    ["Do you know the word that is the opposite of {w}?", "What would be the opposite of {w}?", "Can you name the opposite of {w}?", "Which word means the opposite of {w}?"])

COLOUR = Phrasings(
    ["[What|Which] [colour|color] [is|has] {w}?", "<tell> [the colour|the color] of {w}.", "<what_is> the [colour|color] of {w}?", "<tell> [what|which] [colour|color] {w} [is|has].", "[What|Which] [colour|color] does {w} have?",
     "{w} is [what|which] [colour|color]?", "[Colour|Color|The colour|The color] of {w}?", "[Name|Give me|Say] the [colour|color] of {w}.", "What's the [colour|color] of {w}?", "[What|Which] [colour|color] is {w} [usually|normally|mostly]?", "And {w}? [What|Which] [colour|color]?", "Of [what|which] [colour|color] is {w}?", "[Describe|Guess] the [colour|color] of {w}.", "How is {w} coloured?", "In [what|which] [colour|color] [would|do|should] [you|I|we] [paint|draw] {w}?", "Think of {w}. [What|Which] [colour|color] is it?", "If I [see|look at|draw] {w}, [what|which] [colour|color] is it?", "[What|Which] [colour|color] [do you think|does one say|do people think] {w} [is|has]?", "I [see|draw|paint] {w}. [What|Which] [colour|color] [should it be|is it|do I need]?"],
    ["Which colour should I use to draw {w}?", "Do you know the [colour|color] of {w}?", "What [colour|color] would you say {w} is?", "Can you name the [colour|color] of {w}?"])

MIX = Phrasings(
    ["What [colour|color] do you get [if|when] you mix {a} and {b}?", "[Mix|If I mix|When I mix] {a} and {b}[, what do I get|. What do I get|, which colour do I get]?", "What [do|does] {a} and {b} make?", "<what_is> {a} mixed with {b}?", "What [happens if|happens when|do I get if] I mix {a} [and|with] {b}?",
     "[Which|What] [colour|color] [is|comes from|do I get from] {a} [and|plus|with] {b}?", "<tell> what {a} and {b} make.", "[Which|What] [colour|color] [will|do|can] I [have|see|get] [after mixing|by mixing|from mixing] {a} and {b}?", "[Combine|Blend|Take|Put together] {a} and {b}. [Which|What] [colour|color] is [it|that]?", "{a} [and|plus|with] {b} [is|makes|gives][ which colour| what|]?", "[I blend|I combine|You mix|We mix] {a} [with|and] {b}. [Which|What] [colour|color] [is it|comes out]?", "The mix of {a} and {b}?", "[I mix|We mix|Mix|I stir] {a} paint [with|and|into] {b} paint. [What|Which] [colour|color] [do I get|do we get|is it|will it be]?"],
    ["Which colour appears when {a} meets {b}?", "What colour results if you mix {a} and {b}?"])

AFTER = Phrasings(
    ["[What|Which] {k} [comes|is|follows|goes] [right |directly |]after {w}?", "[What|Which] {k} follows {w}?", "[What|Which] is the {k} after {w}?", "What [comes|is|follows] [right |directly |]after {w}?", "<tell> [the|which|what] {k} [that comes |that is |]after {w}.", "[And|The {k}|Next {k}] after {w}?", "<what_is> the [next {k} after|{k} after|{k} that follows|{k} following] {w}?", "After {w} comes[ what| which {k}|]?", "[Name|Give me|Say] the {k} after {w}.", "If [this {k}|it] is {w}, [what|which {k}] [is|comes] next?",
     "{w} comes before [which|what] {k}?", "After {w}, [which|what] {k} [is it|comes|follows|do we have]?", "[Which|What] {k} do we have after {w}?", "[The next {k}|Next] after {w} is[ what| which|]?", "{w}, and then?", "If this {k} is {w}, what is the next {k}?", "One {k} after {w}?", "[Now|Today] it is {w}. [Which|What] {k} comes next?", "From {w}, go one {k} forward.", "{w} is followed by[ which {k}| what {k}| what|]?", "{w}: which {k} is next?", "[When|Once|After|If] {w} [is gone|has passed|is past|is finished], [which|what] {k} [comes next|is it|follows|starts|is next]?"],
    ["When {w} ends, which {k} begins?", "Which {k} comes next after {w}?", "When {w} is over, which {k} comes?", "Do you know which {k} comes after {w}?"])

BEFORE = Phrasings(
    ["[What|Which] {k} [comes|is|goes] [right |directly |]before {w}?", "[What|Which] {k} precedes {w}?", "[What|Which] is the {k} before {w}?", "What [comes|is] [right |directly |]before {w}?", "<tell> [the|which|what] {k} [that comes |that is |]before {w}.", "[And|The {k}] before {w}?", "<what_is> the [{k} before|{k} that precedes|{k} just before] {w}?", "Before {w} comes[ what| which {k}|]?", "[Name|Give me|Say] the {k} before {w}.", "If [this {k}|it] is {w}, [what|which {k}] [was|came] before?",
     "{w} comes after [which|what] {k}?", "[Which|What] {k} [was|did we have] [just |right |]before {w}?", "[The {k}|The last {k}] before {w} is[ what| which|]?", "One {k} before {w}?", "[Now|Today] it is {w}. [Which|What] {k} came before?", "From {w}, go one {k} back.", "<what_is> the previous {k} if it is {w}?"],
    ["Which {k} comes just before {w}?", "Do you know which {k} comes before {w}?", "What is the name of the {k} before {w}?"])

NTH = Phrasings(
    ["[What|Which] is the {n} {k}[ of the {p}| in the {p}|]?", "<tell> the {n} {k}[ of the {p}| in the {p}|].", "<what_is> the {n} {k} of the {p}?", "[Name|Give me|Say] the {n} {k}[ of the {p}|].", "What's the {n} {k}[ of the {p}|]?", "[Which|What] {k} is [the|] {n}[ in the {p}| of the {p}|]?", "The {n} {k}[ of the {p}|]?", "[Which|What] {k} [comes|is] {n}?"],
    ["Do you know the {n} {k} of the {p}?", "How is the {n} {k} of the {p} called?", "Can you name the {n} {k} of the {p}?"])

LISTED = Phrasings(
    ["[List|Name|Say|Write|Give me|Recite|Tell me|Show me|Count|Write down|Enumerate|Can you list|Can you name|Please list|Please name] [all|all of|] [the |the {c} |][{k}s][ of the {p}| in order| of the {p} in order|].", "What are the [{c} |][{k}s][ of the {p}| in order| called| in a {p}|]?", "[Which|What] {k}s are there[ in a {p}| in the {p}|]?", "[The |]{k}s of the {p}[, please|]?", "<tell> [what the {k}s of the {p} are|the names of the {k}s|all the {k}s]."],
    ["Do you know the {k}s of the {p}?", "How are the {k}s of the {p} called?", "I forgot the {k}s of the {p}. Can you say them?"])

COUNT = Phrasings(
    ["How many {k}s [are there |are |does a year have|]in [a|one|the] {p}?", "How many {k}s does [a|one|the] {p} have?", "<tell> how many {k}s [a {p} has|are in a {p}|there are in a {p}].", "<what_is> the number of {k}s in a {p}?", "How many {k}s [make|are] [a|one] {p}?", "Number of {k}s [in|of] [a|one] {p}?", "How many {k}s [can|do|could] [you|I|we] count in [a|one|the] {p}?", "How many {k}s long is a {p}?", "[Count|Please count] the {k}s in a {p}.", "In [a|one] {p} there are how many {k}s?", "Of how many {k}s is a {p} made?"],
    ["A {p} has how many {k}s?", "What number of {k}s does a {p} have?"])

COLOUR_LIST = Phrasings(
    ["[Name|List|Tell me|Give me|Say|Show me|Can you name|Can you list] [some|a few|three|any] [colours|colors].", "[What|Which] [colours|colors] [do you know|are there|exist]?", "<tell> [some|a few|three] [colours|colors].", "Do you know [any|some] [colours|colors]?", "What are [some|three] [colours|colors]?", "[Colours|Colors]?", "[I need|Show me] [some|three|a few] [colours|colors].", "Give examples of [colours|colors].", "[Your favourite|A few|Some] [colours|colors]?"],
    ["Which colours can you name?", "Could you list a few colours for me?"])

RAINBOW = Phrasings(
    ["[What|Which] are the [colours|colors] of [the|a] rainbow?", "[Name|List|Tell me|Say|Give me] the [colours|colors] of [the|a] rainbow[ in order|].", "[What|Which] [colours|colors] [are in|does] [a|the] rainbow[ have|]?", "<tell> the [colours|colors] of [the|a] rainbow.", "[Rainbow colours|Rainbow colors|The rainbow|Colours of the rainbow]?", "[Which|What] [colours|colors] do you see in [a|the] rainbow?", "How [does a rainbow look|many colours are in a rainbow]?", "<describe> [the rainbow|a rainbow]."],
    ["Do you know the rainbow colours?", "A rainbow has which colours?"])

SUM = Phrasings(
    ["<what_is> {a} {+} {b}?", "How much is {a} {+} {b}?", "{a} {+} {b}", "{a} {+} {b} =", "{a} {+} {b} = ?", "{a} {+} {b}?", "<tell> what {a} {+} {b} is.", "[Calculate|Compute|Solve|Work out] {a} {+} {b}.", "What do you get [for|from|if you do] {a} {+} {b}?", "[And|And what is|And how much is|Now] {a} {+} {b}?", "{a} {+} {b} [is|equals|makes][ what|]?", "What does {a} {+} {b} [make|equal|give]?", "[Give me|Say|Find] [the result of|] {a} {+} {b}.", "<what_is> the [result|answer|value] of {a} {+} {b}?", "[Can|Could] you [calculate|compute|tell me] {a} {+} {b}?", "Please [calculate|solve|work out|tell me] {a} {+} {b}.", "[Solve|Calculate] this: {a} {+} {b}.", "Do you know [the result of |]{a} {+} {b}?", "{a} {+} {b}, [what is it|how much is that|what is that]?", "I want to know {a} {+} {b}.", "[Result of|The result of|Answer:] {a} {+} {b}?", "[Will|Would] you [work out|solve] {a} {+} {b}?", "How much would {a} {+} {b} [make|give]?", "I have to calculate {a} {+} {b}."],
    ["I need the result of {a} {+} {b}.", "Do you know how much {a} {+} {b} is?", "What would {a} {+} {b} be?", "Please compute {a} {+} {b} for me."])

ADD = Phrasings(
    ["Add {a} [and|to] {b}.", "<what_is> the sum of {a} and {b}?", "[Can|Could] you add {a} and {b}?", "If I add {a} and {b}, what do I get?", "What do I get if I add {a} [and|to] {b}?", "<tell> the sum of {a} and {b}.", "Sum of {a} and {b}?", "How much [is|are] {a} and {b}[ together|]?", "I have {a} [apples|coins|books|eggs] and get {b} more. How many do I have[ now|]?", "Please add {a} [to|and] {b}.", "[Put|Count] {a} and {b} together.", "<what_is> the total of {a} and {b}?", "{a} and {b} together [are|make|is][ what|]?", "[Total|Sum]: {a} and {b}?", "What do {a} and {b} [make|add up to]?", "Increase {a} by {b}.", "[What is|How much is|Calculate] {a} added to {b}?", "<what_is> {a} increased by {b}?", "[Anna|Tom|She|He] has {a} [apples|coins|books|eggs] and [buys|finds|gets] {b} more. How many [in all|now|together]?"],
    ["Sum up {a} and {b}, please.", "Please add the numbers {a} and {b}.", "Give me the sum of {a} and {b}."])

SUBTRACT = Phrasings(
    ["Subtract {b} from {a}.", "Take {b} [away |]from {a}.", "<what_is> the difference between {a} and {b}?", "[Can|Could] you subtract {b} from {a}?", "If I subtract {b} from {a}, what do I get?", "What do I get if I [subtract|take] {b} from {a}?", "<tell> the difference between {a} and {b}.", "Difference between {a} and {b}?", "I have {a} [apples|coins|books|eggs] and [lose|give away|eat|sell] {b}. How many [do I have|are left|remain]?", "Please [subtract|take] {b} from {a}.", "{a} take away {b}?", "Remove {b} from {a}.", "What remains [if|when] {b} is taken [away |]from {a}?", "Decrease {a} by {b}.", "[What is|How much is|Calculate] {b} [subtracted|taken|taken away] from {a}?", "<what_is> {a} decreased by {b}?", "What is left of {a} [after taking|when I take] away {b}?", "From {a} [subtract|take] {b}.", "[Anna|Tom|She|He] has {a} [apples|coins|books|eggs] and [loses|sells|eats] {b}. How many [remain|are left|now]?", "How much is {a} without {b}?"],
    ["What do I have left if {b} of {a} are gone?", "What is left if I take {b} from {a}?", "Give me the difference between {a} and {b}."])

PLUS = ["+", "plus", "+", "plus", "and"]
MINUS = ["-", "minus", "-", "minus", "less"]


def _fill(phrase, slots):
    for name, value in slots.items():
        phrase = phrase.replace("{" + name + "}", value)
    return phrase[0].upper() + phrase[1:]


def opposite_exchange(kind, rng):
    word = rng.choice(sorted(OPPOSITE_OF))
    return _fill(OPPOSITE.draw(kind, rng), {"w": word}), f"The opposite of {word} is {OPPOSITE_OF[word]}."


def colour_exchange(kind, rng):
    if rng.random() < 0.15:
        a, b, mix = rng.choice(MIX_OF)
        a, b = rng.sample([a, b], 2)
        return _fill(MIX.draw(kind, rng), {"a": a, "b": b}), f"{a.capitalize()} and {b} make {mix}."
    dice = rng.random()
    if dice < 0.06:
        return COLOUR_LIST.draw(kind, rng), "Red, blue, yellow, green, orange, purple, brown, black and white."
    if dice < 0.12:
        return RAINBOW.draw(kind, rng), "Red, orange, yellow, green, blue, indigo and violet."
    thing = rng.choice(sorted(COLOUR_OF))
    return _fill(COLOUR.draw(kind, rng), {"w": thing}), f"{thing.capitalize()} is {COLOUR_OF[thing]}."


def calendar_exchange(kind, rng):
    k, p, names = rng.choice([("day", "week", DAYS), ("month", "year", MONTHS)])
    dice = rng.random()
    if dice < 0.15:
        c = rng.choice(["seven" if k == "day" else "twelve"])
        listed = ", ".join(names[:-1]) + " and " + names[-1]
        return _fill(LISTED.draw(kind, rng), {"k": k, "p": p, "c": c}), f"{listed}."
    if dice < 0.22:
        return _fill(COUNT.draw(kind, rng), {"k": k, "p": p}), f"A {p} has {NUMBERS[len(names)]} {k}s."
    at = rng.randrange(len(names))
    if dice < 0.42:
        ordinal = rng.choice([ORDINALS[at], "last"]) if at == len(names) - 1 else ORDINALS[at]
        return (_fill(NTH.draw(kind, rng), {"n": ordinal, "k": k, "p": p}),
                f"The {ordinal} {k} of the {p} is {names[at]}.")
    if dice < 0.74:
        return (_fill(AFTER.draw(kind, rng), {"w": names[at], "k": k}),
                f"{names[(at + 1) % len(names)]} comes after {names[at]}.")
    return (_fill(BEFORE.draw(kind, rng), {"w": names[at], "k": k}),
            f"{names[at - 1]} comes before {names[at]}.")


CLAIMED_LIMIT = 20


def sum_exchange(kind, rng):
    """A sum or difference; the answer repeats it in figures, so that copying and calculating are learnt apart.

    Training goes beyond what is claimed now and then, to 99 and below zero: it teaches carrying better.
    """
    beyond = kind == "training"
    limit = 99 if beyond and rng.random() < 0.35 else CLAIMED_LIMIT
    a, b = rng.randint(0, limit), rng.randint(0, limit)
    minus = rng.random() < 0.5
    if minus and a < b and (not beyond or rng.random() < 0.9):
        a, b = b, a
    if rng.random() < 0.25 and not (minus and a < b):
        phrase = (SUBTRACT if minus else ADD).draw(kind, rng)
    else:
        phrase = SUM.draw(kind, rng)
        sign = rng.choice(MINUS if minus else PLUS)
        if sign in "+-" and rng.random() < 0.25:
            phrase = phrase.replace(" {+} ", "{+}")
        phrase = phrase.replace("{+}", sign)
    in_words = max(a, b) <= CLAIMED_LIMIT and rng.random() < 0.2
    slots = {"a": NUMBERS[a] if in_words else str(a), "b": NUMBERS[b] if in_words else str(b)}
    result = f"{a} - {b} = {a - b}." if minus else f"{a} + {b} = {a + b}."
    return _fill(phrase, slots), result
