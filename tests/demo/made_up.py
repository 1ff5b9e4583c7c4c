"""Agents nobody has seen: tools, parameters and requests from a vocabulary that is invented for each seed.

An `Agent` here is a set of tools with the requests a user would type for them, and for each request the calls that are
the right answer. Only the glue of the requests is English.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random, SystemRandom
from textwrap import indent
from typing import Any

from lousho.core.errors import ToolArgumentsValidationError
from lousho.core.tool_errors import Issue
from lousho.models.demo.words import STOP, is_generic, likeness, stem
from lousho.tools import Tool, define_tool

SEED = int(os.environ.get("LOUSHO_TEST_DEMO_SEED") or SystemRandom().randrange(10**9))
"""The seed of this run."""
NOW = datetime(2026, 11, 30, 12, 0)
"""A Monday."""
SMALL_TALK = "hello thanks tell joke blue today".split()
"""Words of requests that want no tool: a made-up word must not look like one of them."""
WEEKDAYS = "tuesday wednesday thursday friday saturday sunday monday".split()

Call = tuple[str, Any]
"""A tool's name and its arguments; `...` stands for any."""


class Vocabulary:
    """Pronounceable words that no language has, far enough apart to be told from each other."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._used: list[str] = list(SMALL_TALK)

    def word(self) -> str:
        """Return a new word of five to nine letters."""
        while True:
            made = "".join(
                self._rng.choice("bcdfgjklmnprstvz") + self._rng.choice(("", "", "r", "l")) + self._rng.choice("aeiou")
                for _ in range(self._rng.choice((2, 3, 3)))
            ) + self._rng.choice(("", "b", "k", "m", "n", "p", "t", "x"))
            if not 5 <= len(made) <= 9 or made in STOP or is_generic(made) or is_generic(stem(made)):
                continue
            if any(likeness(stem(made), stem(other)) > 0 or made[:4] == other[:4] for other in self._used):
                continue
            self._used.append(made)
            return made

    def name(self) -> str:
        """Return a proper name of one or two words."""
        return " ".join(self.word().capitalize() for _ in range(self._rng.choice((1, 1, 2))))

    def code(self) -> str:
        """Return something like `KX-123`."""
        letters = "".join(self._rng.choice("BCDFGHJKLMNPRSTVWXZ") for _ in range(2))
        return f"{letters}-{self._rng.randint(100, 999)}"

    def mail(self) -> str:
        """Return an address."""
        return f"{self.word()}@{self.word()}.example"


@dataclass
class Param:
    """A parameter: its words, its schema, and how a user says a value of it."""

    words: list[str]
    schema: dict[str, Any]
    draw: Callable[[], tuple[Any, str]]
    """Returns a value and how it is said."""
    style: str = "snake"
    inner: list[Param] = field(default_factory=lambda: [])

    @property
    def key(self) -> str:
        """The name in the schema."""
        if self.style == "camel":
            return self.words[0] + "".join(word.capitalize() for word in self.words[1:])
        return "_".join(self.words)

    @property
    def said(self) -> str:
        """The name in a sentence."""
        return " ".join(self.words)


class Maker:
    """Makes parameters, tools and requests from one random source."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.words = Vocabulary(rng)

    def param(self, kind: str) -> Param:
        """Return a parameter of a kind, with a name of one or two words."""
        words = [self.words.word() for _ in range(self.rng.choice((1, 1, 2)))]
        style = self.rng.choice(("snake", "camel"))
        about = f"The {' '.join(words)} of the {self.words.word()}"
        return getattr(self, f"_{kind}")(words, style, about)

    def _name(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.words.name()
            return value, self.rng.choice((value, f'"{value}"', f"'{value.lower()}'")).replace("''", "'")

        def settled() -> tuple[Any, str]:
            value, said = draw()
            return (value.lower() if said.startswith("'") else value), said

        return Param(words, {"type": "string", "description": about}, settled, style)

    def _code(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.words.code()
            return value, value

        return Param(words, {"type": "string", "description": f"{about}, like {self.words.code()}"}, draw, style)

    def _whole(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.rng.randint(2, 900)
            return value, str(value)

        return Param(words, {"type": "integer", "description": about, "minimum": 1, "maximum": 1000}, draw, style)

    def _amount(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.rng.randint(1, 99) + self.rng.choice((0.5, 0.25))
            return value, str(value)

        return Param(words, {"type": "number", "description": about}, draw, style)

    def _choice(self, words: list[str], style: str, about: str) -> Param:
        options = [self.words.word() for _ in range(self.rng.randint(2, 4))]
        if self.rng.random() < 0.3:
            options[0] = f"{options[0]}_{self.words.word()}"

        def draw() -> tuple[Any, str]:
            value = self.rng.choice(options)
            return value, self.rng.choice((value, value.replace("_", " "), f'"{value}"'))

        return Param(words, {"enum": options, "type": "string", "description": about}, draw, style)

    def _flag(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.rng.random() < 0.5
            return value, self.rng.choice(("yes", "true", "on") if value else ("no", "false", "off"))

        return Param(words, {"type": "boolean", "description": about}, draw, style)

    def _day(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            ahead = self.rng.randint(0, 7)
            day = NOW.date() + timedelta(days=ahead)
            said = {0: "today", 1: "tomorrow"}.get(ahead, f"in {ahead} days")
            if ahead > 1 and self.rng.random() < 0.5:
                said = WEEKDAYS[ahead - 1].capitalize()
            return day.isoformat(), self.rng.choice((said, day.isoformat()))

        return Param(words, {"type": "string", "format": "date", "description": about}, draw, style)

    def _mail(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            value = self.words.mail()
            return value, value

        return Param(words, {"type": "string", "format": "email", "description": about}, draw, style)

    def _labels(self, words: list[str], style: str, about: str) -> Param:
        def draw() -> tuple[Any, str]:
            values = [self.words.word() for _ in range(self.rng.randint(2, 3))]
            said = f"{', '.join(values[:-1])} and {values[-1]}"
            return values, said

        return Param(words, {"type": "array", "items": {"type": "string"}, "description": about}, draw, style)

    def _record(self, words: list[str], style: str, about: str) -> Param:
        inner = [self.param(kind) for kind in self.rng.sample(("name", "whole", "choice", "code", "mail"), 2)]
        return Param(words, self.object_of(inner, description=about), lambda: ({}, ""), style, inner)

    def _entries(self, words: list[str], style: str, about: str) -> Param:
        inner = [self.param("name"), self.param("whole")]
        schema = {"type": "array", "items": self.object_of(inner), "description": about}

        def draw() -> tuple[Any, str]:
            pairs = [(self.words.name(), self.rng.randint(2, 40)) for _ in range(self.rng.randint(1, 3))]
            values = [{inner[0].key: name, inner[1].key: count} for name, count in pairs]
            said = [f"{count} {name}" for name, count in pairs]
            return values, " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)

        return Param(words, schema, draw, style)

    def object_of(self, params: Sequence[Param], optional: Sequence[Param] = (), **more: Any) -> dict[str, Any]:
        """Return the JSON Schema of an object with these parameters."""
        return {
            "type": "object",
            "properties": {param.key: param.schema for param in (*params, *optional)},
            "required": [param.key for param in params],
            **more,
        }


@dataclass
class Case:
    """What a user says, turn by turn, and the calls each turn must lead to."""

    label: str
    turns: list[tuple[str, list[Call]]]
    says: list[str] = field(default_factory=lambda: [])
    """What the last answer must contain."""
    approve: bool | None = None
    """The reviewer's decision where a call waits for one."""
    answers: list[str] = field(default_factory=lambda: [])
    """What the user replies to questions that come through the agent's own tool."""


@dataclass
class MadeUpAgent:
    """Tools and the requests that belong to them."""

    tools: list[Tool]
    cases: list[Case]
    ask_question: bool = False
    log: list[Call] = field(default_factory=lambda: [])


@dataclass
class MadeUpTool:
    """A tool with its words and parameters."""

    tool: Tool
    verb: str
    noun: str
    params: list[Param]


def make_tool(
    maker: Maker, log: list[Call], params: Sequence[Param], *, optional: Sequence[Param] = (), **options: Any
) -> MadeUpTool:
    """Return a tool named `<verb>_<noun>` that logs its calls and answers with what it got."""
    verb, noun = maker.words.word(), maker.words.word()
    name = options.pop("name", f"{verb}_{noun}")
    body: str = options.pop("body", f"return {{'handled': {noun!r}, **arguments}}")
    description = options.pop("description", f"{verb.capitalize()} a {noun} for the {maker.words.word()}.")

    act = compiled(body, name)

    def execute(arguments: dict[str, Any]) -> Any:
        log.append((name, arguments))
        return act(arguments)

    made = define_tool(
        name=name, description=description, input=maker.object_of(params, optional), execute=execute, **options
    )
    BODIES[name] = body
    return MadeUpTool(made, verb, noun, [*params])


BODIES: dict[str, str] = {}
"""What each tool does, as Python: for writing it into a file."""


def compiled(body: str, name: str) -> Callable[[dict[str, Any]], Any]:
    """Return a function that does what `body` says with its `arguments`."""
    names: dict[str, Any] = {
        "NAME": name,
        "Issue": Issue,
        "ToolArgumentsValidationError": ToolArgumentsValidationError,
    }
    exec(f"def act(arguments):\n{indent(body.strip(), '    ')}", names)
    return names["act"]


def pairs_for(params: Sequence[Param]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return values for the parameters and how each is said, the records' parts by their full names."""
    values: dict[str, Any] = {}
    said: list[tuple[str, str]] = []
    for param in params:
        if param.inner:
            inner, inner_said = pairs_for(param.inner)
            values[param.key] = inner
            said.extend((f"{param.said} {name}", text) for name, text in inner_said)
        else:
            values[param.key], text = param.draw()
            said.append((param.said, text))
    return values, said


def spell_out(maker: Maker, made: MadeUpTool, said: Sequence[tuple[str, str]]) -> str:
    """Return a request that names every parameter, in one of several manners."""
    rng = maker.rng
    opening = rng.choice(
        (
            f"{made.verb} the {made.noun}",
            f"Please {made.verb} a {made.noun}",
            f"Can you {made.verb} the {made.noun}",
            f"I need you to {made.verb} the {made.noun}",
            f"{made.verb.capitalize()} {made.noun}",
        )
    )
    listed = any(" and " in text or ", " in text for _, text in said)
    manner = rng.choice(("with", "pairs", "colon", "where") if not listed else ("lines", "semicolon"))
    if manner == "with":
        parts = [f"{name} {text}" for name, text in said]
        return f"{opening} with {_series(parts)}."
    if manner == "where":
        parts = [f"{name} is {text}" for name, text in said]
        return f"{opening} where {_series(parts)}"
    if manner == "pairs":
        return f"{opening}: " + ", ".join(f"{name.replace(' ', '_')}={text}" for name, text in said)
    if manner == "colon":
        return f"{opening}, " + ", ".join(f"{name}: {text}" for name, text in said)
    if manner == "lines":
        return f"{opening}\n" + "\n".join(f"{name}: {text}" for name, text in said)
    return f"{opening}; " + "; ".join(f"{name}: {text}" for name, text in said)


def _series(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def spelled_case(maker: Maker, made: MadeUpTool, label: str, **more: Any) -> Case:
    """Return a case in which the user says everything at once."""
    values, said = pairs_for(made.params)
    return Case(label, [(spell_out(maker, made, said), [(made.tool.name, values)])], **more)


def flat_agent(rng: Random) -> MadeUpAgent:
    """Tools with plain parameters: all kinds, optional ones, one without any, one that finds things by name."""
    maker, log = Maker(rng), list[Call]()
    kinds = rng.sample(("name", "code", "whole", "amount", "choice", "flag", "day", "mail", "labels"), 4)
    plain = make_tool(maker, log, [maker.param(kind) for kind in kinds])
    finder = make_tool(maker, log, [maker.param("name")], optional=[maker.param("choice"), maker.param("whole")])
    lister = make_tool(maker, log, [], body=f"return {[maker.words.word(), maker.words.word()]!r}")
    dated = make_tool(maker, log, [maker.param("name"), maker.param("day")])
    agent = MadeUpAgent([one.tool for one in (plain, finder, lister, dated)], [], log=log)
    key, day_key = finder.params[0].key, dated.params[1].key
    agent.cases.append(spelled_case(maker, plain, "everything is named"))
    name = maker.words.name()
    how = rng.choice(
        ("{v} {n} for {x}", "what is the {n} in {x}?", "show me the {n} of {x}", 'can you {v} the {n} "{x}"?')
    )
    agent.cases.append(
        Case(
            "one name in a natural sentence",
            [(how.format(v=finder.verb, n=finder.noun, x=name), [(finder.tool.name, {key: name})])],
            says=[name],
        )
    )
    pair = [maker.words.name(), maker.words.name()]
    how = rng.choice(
        ("{v} the {n} for {x} and {y}", "{v} the {n} for {x} and for {y}", "What is the {n} in {x}? And in {y}?")
    )
    agent.cases.append(
        Case(
            "two values make two calls",
            [
                (
                    how.format(v=finder.verb, n=finder.noun, x=pair[0], y=pair[1]),
                    [(finder.tool.name, {key: one}) for one in pair],
                )
            ],
            says=pair,
        )
    )
    agent.cases.append(Case("no parameters", [(f"please {lister.verb} the {lister.noun}", [(lister.tool.name, {})])]))
    day, said = dated.params[1].draw()
    agent.cases.append(
        Case(
            "a day in a natural sentence",
            [
                (
                    f"{dated.verb} the {dated.noun} for {name} {said}",
                    [(dated.tool.name, {dated.params[0].key: name, day_key: day})],
                )
            ],
        )
    )
    extra, extra_said = agent_optional(finder)
    agent.cases.append(
        Case(
            "an optional parameter is used when it is named",
            [
                (
                    f'{finder.verb} the {finder.noun} "{name}" with {extra_said}',
                    [(finder.tool.name, {key: name, **extra})],
                )
            ],
        )
    )
    later = maker.words.name()
    agent.cases.append(
        Case(
            "and what about another one",
            [
                (f"{finder.verb} the {finder.noun} for {name}", [(finder.tool.name, {key: name})]),
                (
                    rng.choice(("and for {x}?", "what about {x}?", "And {x}?")).format(x=later),
                    [(finder.tool.name, {key: later})],
                ),
            ],
        )
    )
    return agent


def agent_optional(finder: MadeUpTool) -> tuple[dict[str, Any], str]:
    """Return a value for the finder's optional choice and how it is said."""
    schema = finder.tool.input_schema["properties"]
    key = next(name for name, part in schema.items() if "enum" in part)
    words = key if "_" not in key else key.replace("_", " ")
    return {key: schema[key]["enum"][-1]}, f"{words} {schema[key]['enum'][-1]}"


def nested_agent(rng: Random) -> MadeUpAgent:
    """Tools with objects in objects, lists, lists of objects, and missing parameters."""
    maker, log = Maker(rng), list[Call]()
    nested = make_tool(maker, log, [maker.param("record"), maker.param(rng.choice(("choice", "whole", "flag")))])
    listed = make_tool(maker, log, [maker.param("code"), maker.param("entries")])
    strings = make_tool(maker, log, [maker.param("name"), maker.param("labels")])
    needy = make_tool(maker, log, [maker.param("code"), maker.param("whole"), maker.param("choice")])
    agent = MadeUpAgent([one.tool for one in (nested, listed, strings, needy)], [], log=log)
    agent.cases.append(spelled_case(maker, nested, "an object inside the arguments"))
    agent.cases.append(spelled_case(maker, listed, "a list of objects"))
    agent.cases.append(spelled_case(maker, strings, "a list of strings"))
    values, said = pairs_for(needy.params)
    given, missing = said[:1], said[1:]
    first = f"{needy.verb} the {needy.noun} with {given[0][0]} {given[0][1]}"
    reply = rng.choice((", ", " and ", "\n")).join(f"{name} {text}" for name, text in missing)
    agent.cases.append(
        Case("what is missing is asked for", [(first, []), (reply, [(needy.tool.name, values)])], says=[])
    )
    values, said = pairs_for(needy.params)
    first = f"{needy.verb} the {needy.noun} with {said[0][0]} {said[0][1]} and {said[2][0]} {said[2][1]}"
    reply = rng.choice(("{x}", "it is {x}", "{x} please", "make it {x}")).format(x=said[1][1])
    agent.cases.append(Case("one missing number", [(first, []), (reply, [(needy.tool.name, values)])]))
    values, said = pairs_for(needy.params)
    agent.cases.append(
        Case(
            "nothing was given, then one thing after the other",
            [
                (f"Please {needy.verb} a {needy.noun}", []),
                (said[0][1], []),
                (said[1][1], []),
                (said[2][1], [(needy.tool.name, values)]),
            ],
        )
    )
    values, said = pairs_for(needy.params)
    other, other_said = pairs_for(strings.params)
    agent.cases.append(
        Case(
            "a new request puts the question aside",
            [
                (f"{needy.verb} the {needy.noun}", []),
                (spell_out(maker, strings, other_said), [(strings.tool.name, other)]),
            ],
        )
    )
    return agent


def troubled_agent(rng: Random) -> MadeUpAgent:
    """Tools that fail, refuse, are refused, and hand results on."""
    maker, log = Maker(rng), list[Call]()
    problem = " ".join(maker.words.word() for _ in range(3))

    failing = make_tool(maker, log, [maker.param("name")], body=f"raise RuntimeError({problem!r})")
    picky_param = maker.param("name")
    complaint = "String should match pattern '^[A-Z ]+$'"
    picky = make_tool(
        maker,
        log,
        [picky_param],
        body=f"""
value = arguments[{picky_param.key!r}]
if value != value.upper():
    raise ToolArgumentsValidationError(NAME, [Issue({picky_param.key!r}, {complaint!r})])
return {{"accepted": value}}
""",
    )
    options = [maker.words.word() for _ in range(3)]
    stern_param = maker.param("name")
    wanted = f"Input should be '{options[0]}', '{options[1]}' or '{options[2]}'"
    stern = make_tool(
        maker,
        log,
        [stern_param],
        body=f"""
if arguments[{stern_param.key!r}] not in {options!r}:
    raise ToolArgumentsValidationError(NAME, [Issue({stern_param.key!r}, {wanted!r})])
return "fine"
""",
    )
    gated = make_tool(maker, log, [maker.param("code")], needs_approval=True)
    source = make_tool(maker, log, [maker.param("code")], body=f"return {{'finding': {problem!r}, **arguments}}")
    sender = make_tool(maker, log, [maker.param("mail"), maker.param("name")])
    linked = make_tool(maker, log, [source.params[0]])
    agent = MadeUpAgent(
        [one.tool for one in (failing, picky, stern, gated, source, sender, linked)],
        [],
        ask_question=rng.random() < 0.5,
        log=log,
    )
    name, code, mail = maker.words.name(), maker.words.code(), maker.words.mail()
    agent.cases += [
        Case(
            "a failure is explained and not repeated",
            [(f"{failing.verb} the {failing.noun} for {name}", [(failing.tool.name, {failing.params[0].key: name})])],
            says=[problem],
        ),
        Case(
            "a refused spelling is put right",
            [
                (
                    f"{picky.verb} the {picky.noun} for {name}",
                    [(picky.tool.name, {picky_param.key: name}), (picky.tool.name, {picky_param.key: name.upper()})],
                )
            ],
            says=[name.upper()],
        ),
        Case(
            "an approved call runs",
            [(f"{gated.verb} the {gated.noun} {code}", [(gated.tool.name, {gated.params[0].key: code})])],
            says=[code],
            approve=True,
        ),
        Case(
            "a rejected call is not tried again",
            [(f"{gated.verb} the {gated.noun} {code}", [])],
            says=["not approved"],
            approve=False,
        ),
        Case(
            "a result is handed on",
            [
                (
                    f"{source.verb} the {source.noun} {code}, then {sender.verb} it to {mail}",
                    [
                        (source.tool.name, {source.params[0].key: code}),
                        (sender.tool.name, {sender.params[0].key: mail, sender.params[1].key: ...}),
                    ],
                )
            ],
            says=[problem],
        ),
        Case(
            "two requests in one message",
            [
                (
                    f"{source.verb} the {source.noun} {code} and {failing.verb} the {failing.noun} for {name}",
                    [
                        (source.tool.name, {source.params[0].key: code}),
                        (failing.tool.name, {failing.params[0].key: name}),
                    ],
                )
            ],
            says=[problem],
        ),
        Case(
            "a parameter comes from the result before",
            [
                (
                    f"{source.verb} the {source.noun} {code} and then {linked.verb} the {linked.noun}",
                    [
                        (source.tool.name, {source.params[0].key: code}),
                        (linked.tool.name, {linked.params[0].key: code}),
                    ],
                )
            ],
        ),
    ]
    wrong, right = maker.words.name(), rng.choice(options)
    asked = Case(
        "allowed values from an error are asked for",
        [(f"{stern.verb} the {stern.noun} for {wrong}", [(stern.tool.name, {stern_param.key: wrong})])],
    )
    if agent.ask_question:
        asked.answers = [right]
        asked.turns[0][1].append((stern.tool.name, {stern_param.key: right}))
    else:
        asked.turns.append((right, [(stern.tool.name, {stern_param.key: right})]))
    agent.cases.append(asked)
    return agent


def agents_for(seed: int) -> list[MadeUpAgent]:
    """Return the three agents of a seed."""
    return [make(Random(f"{seed}-{make.__name__}")) for make in (flat_agent, nested_agent, troubled_agent)]
