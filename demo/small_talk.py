# SPDX-License-Identifier: MIT
"""Small talk: greetings, the user's name, short stories, and saying "I don't know"."""
from phrases import Phrasings, sample, parse

GREETINGS = [
    ("hello", "Hello! I am the Quern demo model. Ask me what Quern is, or try a small sum.",
     ["[Hi|Hello|Hey|Good morning|Good evening|Good afternoon|Good day|Greetings|Hi there|Hello there|Hey there|Hiya|Howdy|Yo|Welcome][!|.|]", "[Hi|Hello|Hey|Good morning|Good evening] [you|model|Quern|friend|everyone|my friend|demo model|computer|again|assistant|bot][!|.|]",
      "[Nice|Good|Glad|Happy] to [meet|see] you[!|.]", "[Hello|Hi] hello[!|.]", "[Anybody|Anyone|Is anybody|Is anyone] there?", "[Are you there|Are you awake|Can you hear me|Do you work|Test|Testing|Does this work|Are you ready]?", "[Let's|Let us] [chat|talk|begin|start]."],
     ["A [very |]good [morning|evening|day] to you!", "Hey hey!", "Hello, is someone there?"]),
    ("how_are_you", "I am fine, thank you. How can I help you?",
     ["How are you[ today| doing| this morning| now| feeling|]?", "How do you [do|feel][ today|]?", "How is it going?", "How's it going?", "[Hello|Hi|Hey][,|!] how are you[ today| doing|]?", "Are you [well|okay|OK|fine|happy|good]?", "How have you been?", "[What's up|Sup|What is up]?", "How is your day[ so far| going|]?", "How are things?", "Is everything [okay|all right|fine]?"],
     ["How are you feeling this evening?", "How is everything?", "Hello there, how are you?"]),
    ("thanks", "You are welcome!",
     ["[Thanks|Thank you|Thanks a lot|Thank you very much|Thank you so much|Many thanks|Thx|Cheers|Great, thanks|Nice, thank you|OK, thanks|Perfect, thank you|Thank you for your help|Thanks for the help|Thanks for that][!|.|]", "[That is|That's|This is|That was] [great|good|helpful|nice|perfect|useful|cool|very helpful|very kind|wonderful][!|.]", "[Thanks|Thank you] [again|a million|a ton|for everything|for your time|for this|indeed|kindly|very much indeed|, friend][!|.|]", "[Great|Nice|Cool|Perfect|Good|Well done|Good job|Wonderful|Excellent|Very good|Awesome|Not bad|Good answer|Good bot][!|.]", "You are [great|good|helpful|nice|very kind|clever|smart|funny|cool][!|.]", "You [helped me a lot|did well|are a good model][!|.]", "I [like|love] [you|it|this|that][!|.]", "[Correct|Right|That's right|That is right|That is correct|Yes, that is right|True][!|.]"],
     ["Thank you, that helped[!|.]", "Thanks so much[!|.]", "Great answer, thank you[!|.]"]),
    ("bye", "Goodbye! Type /exit to leave the chat.",
     ["[Bye|Goodbye|Good bye|See you|See you later|Bye bye|Good night|Farewell|So long|Ciao|See you soon|See you tomorrow|Until next time|Have a nice day|Take care|Cheerio|Later][!|.|]", "[I have to go|I must go|I am leaving|I'm leaving|I need to go|I am going|I am off|That is all|That's all|I am done][ now|][!|.|]", "[It is|It's] [very |getting |so |]late[, |. ][bye|goodbye|see you|I must go][.|!]", "[Well|OK|So|I am tired], good night[.|!]", "[It is time to|I will|I have to|We must|I'm going to] [go|leave|sleep|stop][ now| here|][.|!|]", "[Bye|Goodbye|OK, bye|Thanks, bye|Thank you, bye|Thank you and goodbye|Well, goodbye|Okay, goodbye][!|.]", "[Quit|Exit|Leave|Stop|End|Close][.|!|]"],
     ["Goodbye, and see you soon!", "It is late, good night!", "I will go now, bye!"]),
    ("feeling", "I see. Thank you for telling me.",
     ["[I am|I'm|I feel|Today I am|I am a bit|I am very|I'm so|We are] [happy|sad|tired|hungry|fine|good|well|okay|sick|angry|busy|cold|hot|lonely|excited|scared|curious|lost|confused|ready|late|at home|at work|old|young|here|back|sorry|sleepy|new here][ today| now|][.|!|]", "[I am|I'm] a [student|teacher|programmer|developer|doctor|farmer|miller|person|human|man|woman|girl|boy|beginner|new user|user|baker][.|!|]", "It is [late|early|cold|hot|raining|snowing|sunny|Monday|my birthday|Friday evening][ here| today|][.|!|]", "I [like|love|hate] [tea|coffee|rain|snow|books|summer|my cat|my job|music|computers|winter][.|!|]", "I [had|have|have had|am having|'ve had] [a|such a|quite a] [good|bad|long|nice|busy|hard|great|terrible|quiet|strange|wonderful|difficult] [day|week|morning|weekend|night|evening|time][ today| so far| at work| at home|][.|!|]",
      "[My|Our] [morning|evening|week|weekend|night|holiday|trip|work|lunch|afternoon|year] [was|is|has been] [very |so |quite |a bit |][long|good|bad|nice|busy|hard|great|terrible|quiet|fine|boring][ today| so far|][.|!|]",
      "[Today|Yesterday|It|This|Last night|This morning|The weekend|The day] [was|has been] a [very |really |][good|bad|long|nice|busy|hard|great|terrible|quiet|strange|wonderful|difficult] [day|one|morning|week|time][ for me| at work| so far|][.|!|]",
      "[Today|This morning|Yesterday|Last night] I [slept|worked|went for a walk|stayed at home|went to work|read a book|met a friend|cooked|cleaned the house|did nothing|rested|was at the beach|was at home|went swimming|had no luck|got up early|got up late][ all day| for hours| with my family|][.|!|]",
      "I [slept|worked|rested|walked|played|laughed|cried|waited] [well|badly|a lot|all day|too much|for hours|last night|yesterday][.|!|]",
      "What a [day|week|night|morning|long day|nice day|beautiful morning|terrible week][.|!|]",
      "[I have been|I've been|I was feeling|I am still feeling|I still feel|I felt|Right now I feel|At the moment I am] [very |so |quite |a bit |][tired|happy|sad|sick|lonely|good|ill|bored|busy|great|better|awful|fine][ today| lately| all week| this morning| since yesterday|][.|!|]",
      "[Nothing|Everything] [went|goes] [well|wrong|fine|badly][ today| at work|][.|!|]", "I was [very |so |quite |a bit |][busy|tired|happy|sad|ill|sick|lazy|lucky] [yesterday|this morning|last night|all day|last week].", "I [became|am now|want to be|will be] a [teacher|doctor|programmer|farmer|king|baker][ now| soon| one day|].", "I [work|live|started] [as a|like a] [teacher|doctor|programmer|farmer|king|baker]."],
     ["I am feeling [tired|happy|sad] today.", "My day was [long|good|bad].", "Yesterday I was [tired|sad].", "I must say it was a [hard|nice|long] day.",
      "Such a [long|busy|lovely] day!"]),
    ("unclear", "You can ask me about Quern, opposites, colours, days, months or small sums.",
     ["[Yes|No|Ok|Okay|OK|Why|What|Really|Sure|Maybe|Hmm|Well|So|How|When|Who|Huh|Oh|Ah|Aha|Hm|And|But|Go on|Continue|Please|More|Something|Anything|Again|Yes please|No thanks|Interesting|I see|Of course|Never mind|I don't know|I do not know|I understand|Tell me more|Tell me something|Say something|Say anything|Talk to me|Ask me something|What else|Surprise me|And then|Why not|How so|Are you sure|Is that true|I don't understand|I do not understand|What do you mean|Can you repeat that|Say that again|Repeat][.|!|?|...|]", "[That is|That's|You are|This is] [wrong|not right|not true|strange|funny|bad|a lie|silly|stupid|boring|not what I asked][.|!|]", "[Ask me|Tell me] [a question|anything|something interesting|something new|about anything][.|!|]"],
     ["Sorry, what do you mean by that?", "Hmm, is that really true?", "Sorry, I did not understand."]),
    ("joke", "Why did the token cross the queue? To get to the other worker.",
     ["[Tell me|Do you know|Say|Give me|Can you tell me|Make|Please tell me|Know] [a|another|any|a good|a short|a funny|some] [joke|jokes].", "[Joke|A joke]?", "Make me laugh.", "Can you [joke|make a joke|be funny]?", "[Something|Say something] funny.", "I want to [hear a joke|laugh]."],
     ["I would like to hear a joke.", "Do you have a joke for me?"]),
]

UNKNOWN_ANSWER = "I don't know that. I am a small demo model: ask me about Quern, colours, days or small sums."

TOPICS_NOT_KNOWN = """history, football, music, politics, cooking, physics, chemistry, biology, movies, art, poetry, philosophy,
religion, money, stocks, taxes, law, medicine, cars, planes, trains, space, the moon, the stars, dinosaurs, chess, tennis,
fashion, gardening, Shakespeare, Einstein, Napoleon, Mozart, Paris, London, Rome, Tokyo, Berlin, Africa, Europe, China,
the universe, gravity, electricity, quantum mechanics, Linux, Windows, JavaScript, databases, bitcoin, love, happiness,
the weather, the news, the internet, the president, baking bread, pasta, pizza, yoga, hiking, the ocean floor, volcanoes""".replace("\n", " ").split(", ")

PLACES = """France, Germany, Italy, Spain, Japan, China, India, Brazil, Canada, Mexico, Egypt, Kenya, Norway, Sweden, Poland,
Greece, Turkey, Russia, Peru, Chile, Ireland, Portugal, Austria, Hungary, Morocco, Vietnam, Texas, California""".replace("\n", " ").split(", ")

UNKNOWN = Phrasings(
    ["<what_is> the [capital|population|president|currency|king|size|flag|national dish|highest mountain|largest city|longest river] of {place}?", "[How many people live|What do people eat|What language do they speak|What is the weather|What time is it|Who lives] in {place}?", "[Who is|Who was] the [president|king|queen|leader|first king|best singer] of {place}?", "How far is it [to|from here to] {place}?", "Where is {place}?",
     "<what_is> the [capital|population|currency] of {x}?", "<describe> {topic}.", "<describe> {x}.", "What do you [know|think|say] about {topic}?", "<tell> something about {topic}.", "How does {topic} work?", "Who [is|was] {x}?", "What is {x}?", "What is {topic}?", "What does {x} mean?", "Where [is|was] {x}?", "When [was|did] {x} [born|start|end|die|begin|built]?", "Who invented [{x}|the telephone|the wheel|the computer|electricity|paper|the light bulb|the radio]?", "Who wrote [{x}|Hamlet|the Bible|Faust|Don Quixote|this book|the first novel]?", "Who won [the match|the game|the election|the war|the world cup|the race|the prize][ yesterday| last year| in {year}|]?",
     "What happened in [{year}|the year {year}|{place}|{place} in {year}]?", "[When|Why] did [the war|the empire|Rome|{x}] [end|fall|begin|start]?", "What is the weather [today|tomorrow|like|like today|going to be|here]?", "Will it [rain|snow] [today|tomorrow|tonight]?", "What time is it[ now|]?", "What is the [time|date|news]?", "[What|Which] [day|date|month|year] is [it|it today|today]?", "How [old|tall|rich|heavy|fast] is {x}?", "How tall is [the Eiffel tower|Mount Everest|a giraffe]?", "How [deep|big|large|far|old] is [the sea|the moon|the sun|the earth|the universe|Mars]?",
     "Translate [this|hello|{x}|good morning|this sentence] into [French|German|Spanish|Latin|Chinese|Italian].", "How do you say [hello|thank you|{x}|goodbye] in [French|German|Spanish|Latin|Chinese|Italian|Japanese]?", "Write [me |][a|an] [essay|poem|letter|song|email|program|function|report|book] [about|on|for] [{topic}|{x}].", "Write [a|some] [Python|C|Rust|Java|HTML] [program|code|function|script][ that sorts a list| for me|].", "[Cook|Make|Bake|Order|Buy] me [a pizza|some pasta|dinner|a cake|a coffee].", "How do I [cook|bake|make|repair|build|grow|clean|fix|sell|buy|paint] [rice|bread|a cake|a car|a house|a bike|a table|tomatoes|my roof|a shirt|a boat|soup]?",
     "What is the meaning of [life|{x}|love|everything]?", "Why [is|are] [the world|people|cats|dogs|the sea|the moon|life|{x}] [round|so sad|so big|so small|salty|cold|hot|mad|so hard|strange]?", "Should I [buy|sell|marry|invest in|eat|read|watch] {x}?", "Can you [sing|dance|drive|cook|swim|fly|see me|draw|play chess|hear music|search the internet|open a file|send an email|read my mail]?", "Do you [like|love|believe in|eat|want|remember|know] [{x}|{topic}|music|cats|God|pizza|me|your mother|football]?", "Recommend [a|me a|a good] [book|movie|restaurant|song|game|hotel].", "[What|Which] is the [best|worst|biggest|oldest|fastest|smallest] [animal|car|country|city|movie|book|team|computer|phone|food][ in the world| in {place}|]?",
     "<what_is> {m} [times|*|multiplied by|divided by|/|to the power of] {n}?", "{m} [times|*|/|divided by] {n}[?|]", "[What about|I read about|Show me|Let us discuss|Is there|My favourite thing is|Can we discuss|Do people like|Is it true about] {topic}[?|.|]", "[Why|How|When|Where] [do|did|does|can|should] [people|we|they|animals|{x}] [eat|sleep|learn|work|live|travel|sing|win|fight|dream][ in {place}|]?", "[How far|How long|How high|How many] [is|are] [{place}|{x}|{topic}][ from {place}|]?", "[Compare|Explain the difference between] {place} and {place}.", "[Was|Is|Has] [{x}|{place}] [older|larger|better|richer|smaller|been bigger] than [{x}|{place}]?", "In [what|which] [year|country|city|place] [is|was|did] {x} [born|made|found|live|lost|end]?", "[Have|Did] you [ever |]see[n|] [{place}|{x}]?", "[Multiply|Divide] {m} [and|by] {n}.", "<what_is> the [square root|logarithm|square|cube] of {m}?", "<what_is> {big} [plus|+|minus|-|times] {big}?", "{big} [+|-|plus|minus] {n}?", "How many [hours|minutes|seconds|weeks] [are in|does] [a day|an hour|a year|a minute|a month|January][ have|]?", "How many days [are in|does] [January|May|this month|a month][ have|]?", "<what_is> {m} [+|-|plus|minus] {n} [+|-|plus|minus|times] {n}?", "{n} + {n} + {n}", "How [many|much] [legs|eyes|teeth|bones|wheels] does a [spider|human|cat|shark|car|{x}] have?", "{x}?", "{x} {x} {x}.", "{x} {x}?", "[I think|They say|People say|I heard] that {x} is [{x}|good|bad|in {place}].", "My [dog|cat|sister|car|house|job] is [{x}|very nice|in {place}|ill|big|old|new].", "[Play|Open|Close|Call|Find|Show me|Send|Delete] {x}.", "I [want|need|like|have|ate|saw|bought|lost] [a|some|the|] [{x}|dog|car|soup|house|headache|new bike|bread].",
     "Does Quern [run on|support|work on] [Windows|my phone|Android|a toaster|macOS|an iPhone|{x}]?", "Who [founded|owns|likes|hates|sells] Quern?", "How many people use Quern?", "When [was|did] Quern [written|started|released|begin]?"],
    ["Do you happen to know [who won the match|the capital of {place}|how {topic} works|who wrote {x}]?", "I would love to hear about {topic}.", "What can you say about {topic}?", "Have you ever been to {place}?", "Could you explain {topic} to me?", "Is {x} bigger than {x}?", "In which year was {x} born?", "What is the distance between {place} and {place}?"])

NAMES = """Anna Ben Carla David Emma Felix Grace Henry Irene Jack Kate Leo Maria Noah Olivia Paul Rosa Sam Tina Victor Wendy
Adam Alice Amir Andrea Anton Arthur Barbara Bella Boris Bruno Cecilia Charles Chloe Clara Daniel Diana Dora Edgar Elena
Elias Ella Emil Eric Eva Fatima Fiona Frank Frida George Gina Hannah Hans Helen Hugo Ida Igor Ines Isaac Ivan Jacob James
Jane Jean Joan John Jonas Joseph Julia Karim Karl Kim Lara Laura Lena Lily Linda Lisa Louis Lucas Lucy Luis Manuel Marco
Mark Martha Martin Mary Max Mia Michael Mila Mona Nadia Nick Nina Nora Oscar Otto Pablo Peter Philip Rachel Ralph Rita
Robert Robin Rose Ruth Sally Sandra Sara Simon Sofia Stella Stefan Susan Theo Thomas Tim Tom Ursula Vera Viola Walter
Will Yara Yusuf Zoe Ahmed Aisha Akira Bjorn Chen Deepak Farid Gita Hiro Jin Kofi Ling Mei Omar Priya Raj Sanjay Tariq Wei
Yuki Zara Abdul Bianca Conrad Dmitri Estelle Gustav Harriet Ingrid Joyce Kurt Lorenzo Miriam Norbert Olga Quentin
Rebecca Sigrid Tobias Valerie Wilhelm Xavier Yvonne Zoë Jürgen José Chloé Björn Jörg Käthe Ömer Özlem Gökhan Çağla Ayşe
Núria Íñigo Álvaro Ángela Iván Rubén Andrés César Tomás Sofía Lucía Julián Ramón Úrsula Óscar Mélanie Élodie Léa Zoé Rémi
Jérôme Benoît Aurélie Noémie Anaïs Loïc Maël Gaëlle Chloë Hélène Thérèse Joël Irène Naïma Cécile João Inês António
Conceição Simão Søren Jørgen Bjørn Øystein Åse Håkon Märta Pär Görel Łukasz Michał Małgorzata Zdzisław Paweł Jiří Ondřej
Tomáš Lukáš Žaneta Šárka Zoltán Gábor László Éva Mária Siniša Đorđe Ștefan Ionuț Müge Hüseyin Yağmur Günther Köksal Rüdiger
Bärbel""".split()

HELD_OUT_NAMES = """Agnes Albert Astrid Beatrice Carlos Claudia Dennis Dominic Edith Esther Fabian Gloria Harold Ibrahim
Jasmine Julian Kevin Klara Leila Magnus Marta Nadine Nelson Oliver Patricia Pedro Regina Roland Sabine Samuel Tamara Ulrich
Vincent Wanda Zeno Mateo Naomi Ravi Sven Toma Renée Désirée Noël Inés Héctor Mónica Raúl Jörn Åsa Jónas André François
Zübeyde Estêvão Sébastien Bülent""".split()

TELL_NAME = Phrasings(
    ["My name is {name}.", "I am {name}.", "I'm {name}.", "[Hi|Hello|Hey|Good morning|Good evening][,|!] [my name is|I am|I'm] {name}[.|!|]", "[You can|Please|Just] call me {name}.", "Call me {name}.", "The name is {name}.", "[This is|It is|Here is] {name}.", "My name's {name}.", "People call me {name}.", "[Hi|Hello][,|!] I am {name}, [nice to meet you|and you|how are you|who are you][.|?]", "I am called {name}.", "Remember [my name|this|that my name is]: [I am|my name is|] {name}.", "[Please remember that|Remember that|By the way,|Did I tell you that|You should know that] my name is {name}.", "I was named {name}.", "[Say hello to|Meet] {name}, that is me.", "[Say hi to|Greet|Say good morning to|Here comes|Welcome] {name}, [that is me|that's me|which is me|me].", "I [was born|signed up|am here|came here] as {name}.", "You are talking [to|with] {name}.", "{name} here.", "My [first |]name: {name}.", "[My friends|They|All] call me {name}.", "Hi from {name}!", "I go by {name}.", "[From now on|In this chat] I am {name}."],
    ["Everyone calls me {name}.", "Good day, {name} is my name.", "Let me introduce myself: I am {name}.", "Hello there, my name is {name}."])

ASK_NAME = Phrasings(
    ["[What is|What's|What was] my name[ again|]?", "[Do you know|Do you remember|Can you remember|Can you recall|Do you recall|Do you still know|Have you forgotten|Did you forget] my name?", "<tell> my name.", "Who am I?", "What am I called?", "How am I called?", "What did I say my name [is|was]?", "<tell> [what my name is|who I am].", "[Say|Repeat] my name.", "My name is[ what| ...|]?", "[Do you remember|Do you know|Do you still know|Can you tell me] [who I am|what my name is|what I am called]?", "And [what is my name|who am I|my name]?", "[My name|What name did I tell you|What name did I give you|Which name did I tell you]?", "What do [people|you|they] call me?", "[Please|Can you] say my name[ again|].", "Which name do I have?", "[The|What is the|Say the|Repeat the|And the] name [that |]I [gave|said to|mentioned to] you[ before| a moment ago| earlier|][?|.]", "[What|Which] name did I [say|mention|use][ before| earlier|]?", "[Say|Repeat|Tell me|And now] the name [that |]I told you[ before| earlier| a moment ago|][.|?|]", "[What|Which] was [my name|the name that I gave you|the name I said|the one I told you][ before| earlier| a moment ago| again|]?", "[I|We] [told|gave|said to] you [a|my|the] name: [what|which][ was it| is it|]?", "I forgot my name[.|. What is it?]", "[Guess|Try to recall|Think:] what is my name?", "Do I have a name?", "[Is my name known to you|Have I told you my name|Did I tell you my name]?"],
    ["Could you remind me of my name?", "I told you my name. What is it?", "Are you able to remember my name?", "What was the name I told you?"])

STORY_ASK = Phrasings(
    ["[Tell|Tell me|Please tell me|Can you tell me|Could you tell me|Write|Write me|Give me|I want to hear|I would like to hear|Do you know|Make up|Say] a [short |little |simple |nice |good |bedtime |small |]story about [a|the|one|some|my] {animal}.", "[A|Another|One more|Now a] [short |little |]story about [a|the] {animal}[, please|]?", "[Tell me|Do you know] something about a {animal}, as a story.", "Story about a {animal}?"],
    ["I would love a story about a {animal}.", "Could I hear a short story about a {animal}?", "Let me hear a story about a {animal}."])

STORY_ANY = Phrasings(
    ["[Tell|Tell me|Please tell me|Can you tell me|Could you tell me|Write|Write me|Give me|I want to hear|I would like to hear|Do you know|Make up|Say] [a|another|some|one more|any] [short |little |simple |nice |good |bedtime |small |]story[ now| for my child| to me|].", "[A|Another|One more|Now a] [short |little |]story[, please|]?", "[Story|Story time|A story]?", "[Tell|Read] me [a story|something nice|a tale|a bedtime story].", "I am bored."],
    ["I would love to hear a story.", "How about a short story?", "Do you have a story for me?"])

ANIMALS = """cat dog mouse bird fox bear horse cow frog duck rabbit owl hen fish goat sheep pig wolf lion elephant bee snail
hedgehog squirrel donkey turtle crow monkey tiger robot miller king girl boy baker farmer""".split()

STORY = parse("Once there was a [little|small|young|old|happy|clever] {animal} who lived [near a mill|by a river|in a small house|at the "
              "edge of a forest|on a green hill]. One [morning|day|evening] the {animal} [found a bag of grain|met a hungry friend"
              "|lost the way home|heard a strange noise]. [A kind miller|A good friend|An old owl|A little bee] came to help, and "
              "they [shared a warm bread|walked home together|laughed all day|looked at the stars]. From then on the {animal} "
              "[was never alone|was always happy|slept well every night]. The end.")


# What letters of a name that nobody has become, one in six times: most names have none, and one that has must come back.
ACCENTS = {"a": "áàâäåãă", "e": "éèêëę", "i": "íîï", "o": "óôöøõ", "u": "úûüů", "n": "ñń", "c": "çć", "s": "šśş", "z": "žż",
           "l": "ł", "r": "ř"}


def accented(name, rng):
    """The name with one of its letters, seldom two, replaced by one with an accent."""
    for _ in range(rng.choice([1, 1, 1, 2])):
        at = rng.randrange(len(name))
        letter = rng.choice(ACCENTS.get(name[at].lower(), name[at]))
        name = name[:at] + (letter.upper() if at == 0 else letter) + name[at + 1:]
    return name


def syllable_name(rng):
    """A name nobody has: what makes the model copy what it reads and not recall what it knows."""
    starts = "b c d f g h j k l m n p r s t v w y z br th sv gl kl st fr sh ph gr ch".split() + [""]
    middles = "a e i o u a e i o u an el in or us ai en il ul am as es ag ib ol ri eo ic at".split()
    syllables = [rng.choice(starts) + rng.choice(middles)
                 for _ in range(rng.choice([1, 2, 2, 2, 3]))]
    ending = rng.choice(["", "", "", "ne", "e", "ia", "er", "ard", "tte", "s", "th", "mund", "lyn", "ck", "y", "wen", "o", "nes", "ver", "cent", "rich", "old",
                         "nus", "ine", "rid", "m", "el"])
    name = ("".join(syllables) + ending).capitalize()
    if rng.random() < 1 / 6:
        name = accented(name, rng)
    return name if len(name) > 2 and name not in HELD_OUT_NAMES else syllable_name(rng)


def any_name(rng):
    return rng.choice(NAMES) if rng.random() < 0.45 else syllable_name(rng)


def unknown_exchange(kind, rng):
    phrase = UNKNOWN.draw(kind, rng)
    fills = {"{place}": lambda: rng.choice(PLACES), "{topic}": lambda: rng.choice(TOPICS_NOT_KNOWN),
             "{year}": lambda: str(rng.randint(1000, 2030)), "{m}": lambda: str(rng.randint(2, 99)),
             "{n}": lambda: str(rng.randint(2, 20)), "{big}": lambda: str(rng.randint(100, 9999)),
             "{x}": lambda: rng.choice([str.lower, str])(syllable_name(rng) if rng.random() < 0.7 else rng.choice(NAMES))}
    for slot, value in fills.items():
        while slot in phrase:
            phrase = phrase.replace(slot, value(), 1)
    return phrase, UNKNOWN_ANSWER


def story_exchange(kind, rng):
    about = rng.random() < 0.6
    animal = rng.choice(ANIMALS)
    phrase = (STORY_ASK if about else STORY_ANY).draw(kind, rng).replace("{animal}", animal)
    return phrase, sample(STORY, rng).replace("{animal}", animal)


def tell_name_exchange(kind, rng, name):
    return TELL_NAME.draw(kind, rng).replace("{name}", name), f"Nice to meet you, {name}!"


def ask_name_exchange(kind, rng, name):
    answer = f"Your name is {name}." if name else "You have not told me your name yet. What is it?"
    return ASK_NAME.draw(kind, rng), answer


# What stands between a name and a question that follows at once.
BETWEEN = [". ", ". ", ". ", "! ", ", ", "; ", " - ", " and ", ", and ", ". And ", ". So ", ". Now ", ", so "]


def in_one_breath(told, question, rng):
    """A name and a question as one message."""
    between = rng.choice(BETWEEN)
    if between[-2:] != ". " and between != "! " and not question.startswith(("I ", "Quern")):
        question = question[0].lower() + question[1:]
    return told.rstrip("?.!") + between + question


def name_in_one_breath(kind, rng, name):
    """A name, and in the same message the question for it."""
    told, _ = tell_name_exchange(kind, rng, name)
    question, answer = ask_name_exchange(kind, rng, name)
    return in_one_breath(told, question, rng), answer
