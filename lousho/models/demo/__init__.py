"""The demo model, `mock/demo`: no key, no network, and yet an agent that works.

It is honest about being rule-based. From the user's words and the tools' schemas it chooses tools, fills their
arguments, reacts to results, errors and refusals, asks for what is missing, and writes an answer:

    provider -> conversation (the transcript replayed) -> requests (clauses, tools, arguments) -> phrases

Nothing in it knows any particular tool. Its pieces, from the letters up: `words` and `dates`, `reading` (a message as
units), `schema` (a tool's fields), `choose` and `clauses` (which tool), `mentions`, `convert`, `segments`, `filling`,
`strings` and `arguments` (with what), `results`, `repair` and `completion` (what came back), `talk`, `examples`,
`answers` and `phrases` (what is said).
"""

from __future__ import annotations

from lousho.models.demo.provider import DemoProvider

__all__ = ["DemoProvider"]
