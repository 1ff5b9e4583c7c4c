"""Agents with deeper schemas: two records with equal parts, optional records, lists of choices, points in time, unions."""

from __future__ import annotations

from random import Random
from typing import Any

from made_up import Call, Case, MadeUpAgent, Maker, Param, make_tool, pairs_for, spell_out

from lousho.models.demo.examples import example_for
from lousho.models.demo.views import view_of


def deep_agent(rng: Random) -> MadeUpAgent:
    """Tools whose arguments nest, and the examples that the model itself gives for them."""
    maker, log = Maker(rng), list[Call]()
    shared = maker.param("name")
    second = maker.param(rng.choice(("whole", "code", "mail")))
    records = [_record(maker, [shared, second]) for _ in range(2)]
    twin = make_tool(maker, log, records)
    tags = [maker.words.word() for _ in range(4)]
    tag_param = Param(
        [maker.words.word()],
        {"type": "array", "items": {"type": "string", "enum": tags}, "description": "Which ones"},
        lambda: ([], ""),
    )
    tagged = make_tool(maker, log, [maker.param("code"), tag_param])
    moment = Param([maker.words.word()], {"type": "string", "format": "date-time"}, lambda: ("", ""))
    timed = make_tool(
        maker,
        log,
        [maker.param("name"), moment],
        optional=[_record(maker, [maker.param("mail"), maker.param("whole")])],
    )
    either = Param(
        [maker.words.word()],
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        lambda: (0, ""),
    )
    loose = make_tool(maker, log, [maker.param("code")], optional=[either, maker.param("name")])
    numbers = Param(
        [maker.words.word()], {"type": "array", "items": {"type": "number"}, "minItems": 2}, lambda: ([], "")
    )
    adder = make_tool(maker, log, [numbers])
    tools = (twin, tagged, timed, loose, adder)
    agent = MadeUpAgent([one.tool for one in tools], [], log=log)
    values, said = pairs_for(twin.params)
    agent.cases.append(
        Case("two objects with equal parts", [(spell_out(maker, twin, said), [(twin.tool.name, values)])])
    )
    chosen = rng.sample(tags, 2)
    code = maker.words.code()
    agent.cases.append(
        Case(
            "a list of choices",
            [
                (
                    f"{tagged.verb} the {tagged.noun} {code} with {chosen[0]} and {chosen[1]}",
                    [(tagged.tool.name, {tagged.params[0].key: code, tag_param.key: chosen})],
                )
            ],
        )
    )
    name = maker.words.name()
    hour = rng.randint(1, 11)
    for when, expected in (
        (f"tomorrow at {hour}pm", f"2026-12-01T{hour + 12:02}:00:00"),
        (f"on 2026-12-24 at {hour + 10}:30", f"2026-12-24T{hour + 10:02}:30:00"),
        (f"on Friday at {hour}:15 am", f"2026-12-04T{hour:02}:15:00"),
        ("2027-01-02T10:00:00Z", "2027-01-02T10:00:00+00:00"),
        ("on 3 March 2027 at noon", "2027-03-03T12:00:00"),
    ):
        agent.cases.append(
            Case(
                "a point in time",
                [
                    (
                        f"{timed.verb} a {timed.noun} for {name} {when}",
                        [(timed.tool.name, {timed.params[0].key: name, moment.key: expected})],
                    )
                ],
            )
        )
    agent.cases.append(
        Case(
            "the day first, the time when asked",
            [
                (f"{timed.verb} a {timed.noun} for {name} tomorrow", []),
                (
                    rng.choice(("at 4pm", "16:00", "4 pm please", "around 4pm")),
                    [(timed.tool.name, {timed.params[0].key: name, moment.key: "2026-12-01T16:00:00"})],
                ),
            ],
        )
    )
    number = rng.randint(2, 99)
    agent.cases.append(
        Case(
            "a value of one of several types",
            [
                (
                    f"{loose.verb} the {loose.noun} {code} with {either.said} {number}",
                    [(loose.tool.name, {loose.params[0].key: code, either.key: number})],
                )
            ],
        )
    )
    agent.cases.append(
        Case(
            "an optional one is left out",
            [(f"{loose.verb} {loose.noun} {code}", [(loose.tool.name, {loose.params[0].key: code})])],
        )
    )
    several = [rng.randint(1, 99) for _ in range(3)]
    agent.cases.append(
        Case(
            "a list of numbers",
            [
                (
                    f"{adder.verb} the {adder.noun} of {several[0]}, {several[1]} and {several[2]}",
                    [(adder.tool.name, {numbers.key: several})],
                )
            ],
        )
    )
    for one in tools:
        function = one.tool
        example = example_for(view_of(function.name, function.description, function.input_schema)).strip("“”")
        if "…" not in example:
            agent.cases.append(Case("the model's own example works", [(example, [(function.name, ...)])]))
    return agent


def _record(maker: Maker, inner: list[Param]) -> Param:
    words: list[str] = [maker.words.word()]
    schema: dict[str, Any] = maker.object_of(inner, description=f"The {words[0]}")
    return Param(words, schema, lambda: ({}, ""), "snake", inner)


def deep_agents_for(seed: int) -> list[MadeUpAgent]:
    """Return one more agent of a seed."""
    return [deep_agent(Random(f"{seed}-deep"))]
