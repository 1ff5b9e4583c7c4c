"""Words: how a request, a tool's name and a description become tokens that can be compared.

Everything here is about language in general: letters, endings, and the closed classes of words (articles, pronouns,
prepositions) that say nothing about a subject. What an agent is about comes from its own tools alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUN = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")
_CONTRACTION = re.compile(r"['’](?:s|re|ve|ll|d|m)?$")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]")

ARTICLES = frozenset("a an the this that these those my your our his her its their some any".split())
PRONOUNS = frozenset("i me we us you he him she it they them one mine yours myself yourself".split())
BACK_REFERENCES = frozenset("it that this them those these him her there".split())
RESULT_WORDS = frozenset("result answer output summary respons find".split())
"""Stems by which people call what was found before."""
NEGATIONS = frozenset("no not without never dont doesnt isnt wont cant arent except nor non".split())
AUXILIARIES = frozenset(
    "is are was were be been being am do does did doing can could will would shall should may might must"
    " has have had having let lets wanna gonna".split()
)
ASKING = frozenset("what which who whom whose where when why how whats wheres whens hows whos".split())
POLITE = frozenset(
    "please kindly thanks thank hi hello hey ok okay sure just now also too maybe really quickly quick want need like"
    " id im ill ive youd wish try actually currently again so well then there here really very more up out off back"
    " go going something anything everything else much many".split()
)
GREETINGS = frozenset("hi hello hey thanks thank ok okay sure".split())
"""Polite words that are the subject themselves when a verb acts on them: `translate hello`."""
PREPOSITIONS = frozenset(
    "in to for from at with on by about into onto as of without under over near per until till before after since using via"
    " within between against around through toward towards inside regarding concerning called titled labelled labeled"
    " named saying during because"
    " fur nach mit bei zum zur uber pour avec chez dans vers depuis para con desde hasta sobre".split()
)
JOINERS = frozenset("and or plus versus vs than nor but und oder et ou".split())
STOP = ARTICLES | PRONOUNS | AUXILIARIES | ASKING | POLITE | PREPOSITIONS | JOINERS | NEGATIONS | {"if", "s", "t"}

# Verbs that mean much the same in any tool set, by the beginning of their stem; a digit says how many more letters it
# may have. A verb of these families is weak evidence by itself, because half of all tools begin with one.
_FAMILIES = (
    "any chec1 displ2 fetc1 find get giv1 how list look looku1 open quer1 read retri2 sear2 see show tell view",
    "add creat mak1 inser1 put regis1 recor1 writ sav1 book schedu1 reser1 appen1 log stor open plac remin1 remem1 set",
    "delet remov cance2 drop clea1 eras disca2 purg",
    "updat chang edit modif1 set renam mov1 adjus1 switc1 replac",
    "send mail emai1 post notif1 messag tell forwa2 shar submi2",
    "complet finis1 mark clos tick done chec1",
    "calculat comput sum add conver1 evaluat",
    "star1 begi1 run execut launc1 trig1",
    "stop end paus halt kill abor1",
)


def _beginnings() -> dict[str, list[tuple[int, int]]]:
    """Return the beginning of each verb's stem with the letters it may go on for and its family."""
    found: dict[str, list[tuple[int, int]]] = {}
    for number, family in enumerate(_FAMILIES):
        for entry in family.split():
            beginning = entry.rstrip("0123456789")
            found.setdefault(beginning, []).append((int(entry[len(beginning) :] or 0), number))
    return found


_BEGINNINGS = _beginnings()
# Of these, the ones that say least: what they act on decides.
_LIGHT = frozenset("get show tell give find list make crea see look chec view do take what how whic".split())


@lru_cache(maxsize=8192)
def fold(word: str) -> str:
    """Return `word` in lower case, without accents, hyphens and the tail of a contraction."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = _CONTRACTION.sub("", plain)
    return re.sub(r"['’\-]", "", plain)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the folded `word` without its commonest English endings; other languages pass through almost unchanged."""
    return _without_suffix(_singular(fold(word)))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_suffix(word: str) -> str:
    for ending, shortest in (("ing", 3), ("ed", 3), ("ment", 4), ("ion", 4), ("er", 4), ("or", 4), ("ly", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word[: -len(ending)]
            if ending in {"ing", "ed", "er"} and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def split_identifier(text: str) -> list[str]:
    """Return the words of a tool or parameter name, whatever joins them: `_`, `-`, `.`, capitals."""
    return [word for part in re.split(r"[\W_]+", text) if part for word in _CAMEL.split(part) if word]


def words_in(text: str) -> list[str]:
    """Return the words of a text as written; scripts without spaces give pairs of letters."""
    found: list[str] = []
    for run in _RUN.findall(text):
        if _UNSPACED.search(run) and len(run) > 2:
            found.extend(run[index : index + 2] for index in range(len(run) - 1))
        else:
            found.append(run)
    return found


def content_stems(text: str) -> list[str]:
    """Return the stems of the words of `text` that say something, in order."""
    return [stem(word) for word in words_in(text) if fold(word) not in STOP and len(fold(word)) > 1]


@lru_cache(maxsize=8192)
def families_of(word: str) -> frozenset[int]:
    """Return the numbers of the verb families a word or stem belongs to."""
    if word in ASKING:
        return frozenset({0})
    # A stem must not be cut once more, a word must: both are looked up.
    return frozenset(
        number
        for root in (word, stem(word))
        for length in range(2, len(root) + 1)
        for longest, number in _BEGINNINGS.get(root[:length], ())
        if len(root) - length <= longest
    )


def is_generic(word: str) -> bool:
    """Whether a folded word or stem is one of the verbs that any tool may begin with."""
    return bool(families_of(word))


def is_light(word: str) -> bool:
    """Whether a folded word is a verb that goes with anything."""
    return word[:4] in _LIGHT


def distance(left: str, right: str, limit: int) -> int:
    """Return how many letters must change (swaps count once) to turn one word into the other, at most `limit + 1`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


@lru_cache(maxsize=16384)
def likeness(left: str, right: str) -> float:
    """Return how far two stems are the same word: 1 equal, less for a shared beginning or a typing slip, else 0."""
    if left == right:
        return 1.0
    short, long = sorted((left, right), key=len)
    if len(short) >= 3 and long.startswith(short) and len(long) - len(short) <= 1:
        return 0.9
    if len(short) >= 5 and long.startswith(short) and len(long) - len(short) <= 3:
        return 0.7
    if len(short) >= 5 and short[0] == long[0]:
        limit = 2 if len(short) >= 9 else 1
        if distance(left, right, limit) <= limit:
            return 0.7
    return 0.0


def best_likeness(word: str, others: Iterable[str]) -> float:
    """Return the highest likeness of `word` with any of `others`."""
    return max((likeness(word, other) for other in others), default=0.0)


def humanise(name: str) -> str:
    """Return a tool or parameter name as words a person reads."""
    return (
        " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in split_identifier(name)) or name
    )
