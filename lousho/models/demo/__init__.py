"""The demo model, `mock/demo`: no key, no network, and yet an agent that works.

It is honest about being rule-based. From the user's words and the tools' schemas it chooses tools, fills their
arguments, reacts to results, errors and refusals, asks for what is missing, and writes an answer:

    provider -> conversation (the transcript replayed) -> requests (clauses, tools, arguments) -> phrases

Nothing in it knows any particular tool. Its pieces, from the letters up:

* what was said: `words`, `dates`, `reading` (a message as units), `talk` (small talk)
* what there is: `schema` (the fields of a tool), `linking` (prepositions and fields), `views` (a tool and its words)
* which tool: `choose`, `clauses`
* with what: `mentions`, `convert`, `segments`, `filling`, `typed`, `moments`, `inline_json`, `strings`, `variants`,
  `arguments`
* what came back: `results`, `repair`, `completion`
* what is said: `examples`, `answers`, `phrases`
"""

from __future__ import annotations

from lousho.models.demo.provider import DemoProvider

__all__ = ["DemoProvider"]
