"""The changes that spec-bite tries: each is one behaviour less, and none is a change that no test could see."""

from __future__ import annotations

import ast

import pytest
from mutants import mutants_of

SOURCE = '''
"""Says what the module is for."""
from __future__ import annotations
LIMIT = 3

def allowed(count: int, name: str = "x") -> bool:
    """Says what it does."""
    if count > LIMIT and name:
        raise ValueError("too many")
    count += 1
    return count == 2
'''


def changes(line: int) -> list[str]:
    return [mutant.what for mutant in mutants_of(SOURCE, {line})]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(2, [], id="the module's docstring stays"),
        pytest.param(3, [], id="imports stay"),
        pytest.param(7, [], id="a docstring stays"),
        pytest.param(
            8,
            [
                "never: count > LIMIT and name",
                "swap and/or: count > LIMIT and name",
                "turn the comparison around: count > LIMIT",
            ],
            id="a condition",
        ),
        pytest.param(9, ["delete: raise ValueError('too many')", "change the constant 'too many'"], id="a raise"),
        pytest.param(10, ["delete: count += 1", "change the constant 1"], id="an assignment"),
        pytest.param(
            11,
            ["return None: count == 2", "turn the comparison around: count == 2", "change the constant 2"],
            id="a return",
        ),
    ],
)
def test_a_line_is_changed_in_every_way_that_matters(line: int, expected: list[str]):
    assert changes(line) == expected


def test_every_mutant_is_python_and_differs_from_the_original():
    original = ast.unparse(ast.parse(SOURCE))
    mutants = list(mutants_of(SOURCE, set(range(20))))
    assert mutants
    for mutant in mutants:
        assert ast.unparse(ast.parse(mutant.source)) != original


def test_the_original_is_whole_again_after_the_mutants_were_made():
    mutants = [mutant.source for mutant in mutants_of(SOURCE, {10})]
    assert "count == 2" in mutants[0]
    assert "count > LIMIT and name" in mutants[0]


def test_the_type_of_a_cast_is_left_alone():
    source = "def f(x):\n    return cast('list[int]', x)\n"
    assert [mutant.what for mutant in mutants_of(source, {2})] == ["return None: cast('list[int]', x)"]
