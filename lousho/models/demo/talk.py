"""Small talk: messages that ask for no tool."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from lousho.models.demo.words import fold

Talk: TypeAlias = Literal["greeting", "help", "thanks", "goodbye", "again", "cancel", "yes-no"]

_HELLO = r"(hi|hello|hey|yo|hiya|howdy|greetings|good (morning|afternoon|evening|day)|hallo|hola|bonjour|ciao|moin)"
_WHOLE: tuple[tuple[Talk, str], ...] = (
    ("greeting", rf"{_HELLO}( there| all| everyone| you| bot| agent)*( how are you( doing)?( today)?| whats up)?"),
    ("greeting", r"(how are you( doing)?( today)?|whats up|test|testing|ping|are you there|anyone there)"),
    (
        "thanks",
        r"(ok(ay)? |great |perfect |nice |cool )*(thanks|thank you|thx|ty|cheers|danke|merci|gracias)( a lot| so much| very much| for .+)*",
    ),
    ("thanks", r"(great|perfect|nice|cool|awesome|good job|well done|ok|okay)( work| job)?"),
    ("goodbye", r"(bye|goodbye|bye bye|see you( later)?|cu|exit|quit|good night|ciao|tschuss|adios)"),
    ("help", r"(help|help me|please help|commands|usage|menu|options|tools|list( your| all| the)? (tools|commands))"),
    (
        "again",
        r"(please )?(try |do |run |make )?(it |that |this )?(again|once more|one more time|retry|another( one)?)( please)?",
    ),
    (
        "cancel",
        r"(no )*(cancel|never ?mind|forget (it|that|about it)|stop|abort|skip( it| that)?|leave it|drop it|no thanks|dont bother)( please| that| it| thanks)*",
    ),
    ("yes-no", r"(yes|yep|yeah|sure|no|nope|nah|y|n|of course|absolutely)( please| thanks)?"),
)
_WITHIN: tuple[tuple[Talk, str], ...] = (
    (
        "help",
        r"\bwhat (all )?(can|could|do|are) (you|i|we) (do|able|help|ask|offer|know)\b|\bwhat are your (tools|abilities|capabilities)\b",
    ),
    ("help", r"\bhow (can|do) (you|i) (help|use|work)\b|\bwhat (tools|commands|features)\b|\bhow does this work\b"),
    (
        "help",
        r"\b(who|what) are you\b|\bare you (a |an )?(real|human|bot|robot|ai|llm|gpt|language model|model|chatgpt|demo|person)\b",
    ),
    (
        "help",
        r"\bwhich (model|llm|ai) (are|is|do)\b|\bintroduce yourself\b|\btell me about yourself\b|\bwhat is this\b",
    ),
)


def talk_of(message: str) -> Talk | None:
    """Return what kind of small talk a message is as a whole, `None` when it is none."""
    text = " ".join(fold(word) for word in re.findall(r"[\w'’]+", message[:400]))
    if len(text) > 160:
        return None
    for kind, pattern in _WHOLE:
        if re.fullmatch(pattern, text):
            return kind
    return next((kind for kind, pattern in _WITHIN if re.search(pattern, text)), None)
