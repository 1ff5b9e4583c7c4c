"""More agents nobody has seen, with requests closer to how people talk: shared nouns, prepositions, plurals, fluff."""

from __future__ import annotations

from random import Random
from typing import Any

from made_up import Call, Case, MadeUpAgent, Maker, Param, make_tool

from lousho.tools import define_tool

_BEFORE = (
    "",
    "",
    "",
    "Hi! ",
    "Hello there, ",
    "Hey, could you please ",
    "I'd like you to ",
    "Quick one: ",
    "please ",
    "can you ",
    "OK, now ",
)
_AFTER = ("", "", "", ".", "!", " please", ", thanks!", ". Thank you!", " for me")


def dress(rng: Random, request: str) -> str:
    """Return a request with the small words people put around one."""
    before = rng.choice(_BEFORE)
    dressed = before + request
    if before and not before.endswith(("! ", ": ")):
        dressed = before + request[0].lower() + request[1:]
    if dressed[-1] in "?.!":
        return dressed
    return dressed + rng.choice(_AFTER)


def keeper_agent(rng: Random) -> MadeUpAgent:
    """Tools that keep things: add, list, find, change, remove; they share their noun and differ in the verb."""
    maker, log = Maker(rng), list[Call]()
    noun, body, when = maker.words.word(), maker.words.word(), maker.words.word()
    levels = [maker.words.word() for _ in range(3)]
    level = maker.words.word()

    def tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> Any:
        def execute(arguments: dict[str, Any]) -> Any:
            log.append((name, arguments))
            return {"ok": True, **arguments}

        schema = {"type": "object", "properties": properties, "required": required}
        return define_tool(name=name, description=description, input=schema, execute=execute)

    number = {"type": "integer", "description": f"Number of the {noun}"}
    add, remove = rng.choice(("add", "create", "save")), rng.choice(("remove", "delete"))
    listing, change = rng.choice(("list", "show")), rng.choice(("update", "change"))
    tools = [
        tool(
            f"{add}_{noun}",
            f"{add.capitalize()} a {noun}.",
            {
                body: {"type": "string", "description": f"What the {noun} says"},
                when: {"type": "string", "format": "date", "description": f"When the {noun} is due"},
            },
            [body],
        ),
        tool(f"{listing}_{noun}s", f"{listing.capitalize()} all {noun}s.", {}, []),
        tool(f"{remove}_{noun}", f"{remove.capitalize()} one {noun}.", {"number": number}, ["number"]),
        tool(
            f"{change}_{level}",
            f"{change.capitalize()} the {level} of a {noun}.",
            {"number": number, level: {"type": "string", "enum": levels, "description": f"The new {level}"}},
            ["number", level],
        ),
    ]
    rng.shuffle(tools)
    agent = MadeUpAgent(tools, [], log=log)
    thing = f"{maker.words.word()} the {maker.words.word()}"
    pick = rng.randint(2, 30)
    chosen = rng.choice(levels)
    for label, request, call in (
        (
            "something is added",
            rng.choice(
                (
                    f"add {thing} to my {noun}s",
                    f"{add} a {noun}: {thing}",
                    f'{add} the {noun} "{thing}"',
                    f"new {noun}: {thing}",
                )
            ),
            (f"{add}_{noun}", {body: thing}),
        ),
        (
            "something is added for a day",
            f"{add} a {noun} for tomorrow: {thing}",
            (f"{add}_{noun}", {body: thing, when: "2026-12-01"}),
        ),
        (
            "all are listed",
            rng.choice(
                (f"{listing} my {noun}s", f"show me all {noun}s", f"what are my {noun}s?", f"which {noun}s do I have?")
            ),
            (f"{listing}_{noun}s", {}),
        ),
        (
            "one is removed",
            rng.choice(
                (
                    f"{remove} {noun} {pick}",
                    f"{remove} {noun} number {pick}",
                    f"remove the {noun} #{pick}",
                    f"delete {noun} no. {pick}",
                )
            ),
            (f"{remove}_{noun}", {"number": pick}),
        ),
        (
            "one is changed",
            rng.choice(
                (
                    f"{change} the {level} of {noun} {pick} to {chosen}",
                    f"set the {level} of {noun} {pick} to {chosen}",
                    f"{change} {level} of {noun} {pick}: {chosen}",
                    f"make the {level} of {noun} {pick} {chosen}",
                )
            ),
            (f"{change}_{level}", {"number": pick, level: chosen}),
        ),
    ):
        said = dress(rng, request) if not request.endswith(thing) else rng.choice(("", "Please ", "Hi! ")) + request
        agent.cases.append(Case(label, [(said, [call])]))
    agent.cases.append(
        Case(
            "two verbs on one noun",
            [
                (
                    f"{remove} {noun} {pick} and {listing} all {noun}s",
                    [(f"{remove}_{noun}", {"number": pick}), (f"{listing}_{noun}s", {})],
                )
            ],
        )
    )
    return agent


def linked_agent(rng: Random) -> MadeUpAgent:
    """Parameters that go by preposition, by unit, by their description alone, or by counting."""
    maker, log = Maker(rng), list[Call]()
    units = [maker.words.word() for _ in range(4)]
    ends = ("from", "to")
    shared = {"type": "string", "enum": units}
    converter = make_tool(
        maker,
        log,
        [
            Param([maker.words.word()], {"type": "number", "description": "The quantity"}, lambda: (1, "1")),
            Param([ends[0], maker.words.word()], {**shared, "description": "Unit of the quantity"}, lambda: ("", "")),
            Param([ends[1], maker.words.word()], {**shared, "description": "Unit to turn it into"}, lambda: ("", "")),
        ],
    )
    start, stop, count = maker.words.word(), maker.words.word(), maker.words.word()
    trip = make_tool(
        maker,
        log,
        [
            Param(["from", start], {"type": "string", "description": "Where it begins"}, lambda: ("", "")),
            Param(["to", stop], {"type": "string", "description": "Where it ends"}, lambda: ("", "")),
        ],
        optional=[
            Param([count + "s"], {"type": "integer", "description": f"How many {count}s there are"}, lambda: (1, "1"))
        ],
    )
    cryptic_verb, cryptic_noun = maker.words.word(), maker.words.word()
    cryptic = make_tool(
        maker,
        log,
        [maker.param("name")],
        name=f"{maker.words.word()}{rng.randint(1, 9)}",
        description=f"{cryptic_verb.capitalize()} every {cryptic_noun} of a {maker.words.word()}.",
    )
    ticket = make_tool(maker, log, [maker.param("code")], optional=[maker.param("flag"), maker.param("choice")])
    mailer = make_tool(maker, log, [maker.param("mail"), maker.param("name")])
    agent = MadeUpAgent([one.tool for one in (converter, trip, cryptic, ticket, mailer)], [], log=log)
    quantity = rng.randint(2, 500)
    one, two = rng.sample(units, 2)
    keys = [param.key for param in converter.params]
    agent.cases.append(
        Case(
            "from one unit to another",
            [
                (
                    dress(
                        rng,
                        rng.choice(
                            (
                                "{v} {q} {a} to {b}",
                                "{v} {q} {a} into {b}",
                                "{v} {q}{a} to {b}",
                                "{v} the {n} from {a} to {b} for {q}",
                            )
                        ).format(v=converter.verb, n=converter.noun, q=quantity, a=one, b=two)
                        if len(one) <= 5
                        else f"{converter.verb} {quantity} {one} to {two}",
                    ),
                    [(converter.tool.name, {keys[0]: quantity, keys[1]: one, keys[2]: two})],
                )
            ],
        )
    )
    here, there, some = maker.words.name(), maker.words.name(), rng.randint(2, 9)
    trip_keys = [param.key for param in trip.params]
    there_and_back = rng.choice((f"from {here} to {there}", f"to {there} from {here}"))
    agent.cases.append(
        Case(
            "from here to there",
            [
                (
                    dress(rng, f"{trip.verb} a {trip.noun} {there_and_back}"),
                    [(trip.tool.name, {trip_keys[0]: here, trip_keys[1]: there})],
                )
            ],
        )
    )
    agent.cases.append(
        Case(
            "with a number of things",
            [
                (
                    dress(
                        rng, f"{trip.verb} a {trip.noun} {there_and_back} {rng.choice(('for', 'with'))} {some} {count}s"
                    ),
                    [(trip.tool.name, {trip_keys[0]: here, trip_keys[1]: there, f"{count}s": some})],
                )
            ],
        )
    )
    name = maker.words.name()
    agent.cases.append(
        Case(
            "only the description says what it does",
            [
                (
                    dress(
                        rng,
                        rng.choice(
                            (
                                f"{cryptic_verb} every {cryptic_noun} of {name}",
                                f"{cryptic_verb} the {cryptic_noun}s for {name}",
                            )
                        ),
                    ),
                    [(cryptic.tool.name, {cryptic.params[0].key: name})],
                )
            ],
        )
    )
    flag_key = next(k for k, part in ticket.tool.input_schema["properties"].items() if part.get("type") == "boolean")
    choice_key = next(k for k, part in ticket.tool.input_schema["properties"].items() if "enum" in part)
    choice = rng.choice(ticket.tool.input_schema["properties"][choice_key]["enum"])
    code = maker.words.code()
    on = rng.random() < 0.5
    said_flag = " ".join(_words(flag_key))
    agent.cases.append(
        Case(
            "a switch is on or off",
            [
                (
                    dress(rng, f"{ticket.verb} {ticket.noun} {code} {'with' if on else 'without'} {said_flag}"),
                    [(ticket.tool.name, {ticket.params[0].key: code, flag_key: on})],
                )
            ],
        )
    )
    agent.cases.append(
        Case(
            "a choice stands before its name",
            [
                (
                    dress(
                        rng,
                        f"{ticket.verb} {ticket.noun} {code} with {choice.replace('_', ' ')} {' '.join(_words(choice_key))}",
                    ),
                    [(ticket.tool.name, {ticket.params[0].key: code, choice_key: choice})],
                )
            ],
        )
    )
    agent.cases.append(
        Case(
            "the value alone says what is meant",
            [
                (
                    rng.choice((f"{ticket.noun} {code}", f"where is {ticket.noun} {code}?", f"{ticket.noun}s: {code}")),
                    [(ticket.tool.name, {ticket.params[0].key: code})],
                )
            ],
        )
    )
    mail, text = maker.words.mail(), f"{maker.words.word()} {maker.words.word()} {maker.words.word()}"
    mail_keys = [param.key for param in mailer.params]
    agent.cases.append(
        Case(
            "a text to an address",
            [
                (
                    rng.choice(
                        (
                            '{v} "{t}" to {m}',
                            "{v} a {n} to {m} saying {t}",
                            "{v} {m} the {n}: {t}",
                            "{v} the {n} '{t}' to {m}",
                        )
                    ).format(v=mailer.verb, n=mailer.noun, t=text, m=mail),
                    [(mailer.tool.name, {mail_keys[0]: mail, mail_keys[1]: text})],
                )
            ],
        )
    )
    slip = _typing_slip(rng, trip.verb)
    agent.cases.append(
        Case(
            "a typing slip",
            [
                (
                    f"{slip} a {trip.noun} from {here} to {there}",
                    [(trip.tool.name, {trip_keys[0]: here, trip_keys[1]: there})],
                )
            ],
        )
    )
    agent.cases.append(
        Case(
            "what came before is context",
            [
                (
                    f"My {ticket.noun} is {code}. Can you {ticket.verb} it?",
                    [(ticket.tool.name, {ticket.params[0].key: code})],
                )
            ],
        )
    )
    for request in (
        "hello",
        "thanks!",
        "what can you do?",
        "tell me a joke",
        "who are you?",
        "Why is the sky blue?",
        "How are you today?",
        "",
        "???",
        "🙂",
    ):
        agent.cases.append(Case("small talk calls nothing", [(request or " ", [])]))
    return agent


def _words(key: str) -> list[str]:
    out = [""]
    for letter in key:
        if letter == "_":
            out.append("")
        elif letter.isupper():
            out.append(letter.lower())
        else:
            out[-1] += letter
    return out


def _typing_slip(rng: Random, word: str) -> str:
    """Return a word with two of its inner letters swapped."""
    places = [index for index in range(1, len(word) - 1) if word[index] != word[index + 1]]
    index = rng.choice(places)
    return word[:index] + word[index + 1] + word[index] + word[index + 2 :]


def natural_agents_for(seed: int) -> list[MadeUpAgent]:
    """Return two more agents of a seed."""
    return [make(Random(f"{seed}-{make.__name__}")) for make in (keeper_agent, linked_agent)]
