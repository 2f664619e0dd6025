"""The articles of a world: one a person, base facts only, rendered when it is asked for.

An article states parents, spouse, siblings, children, friends and attributes, and names no other
relation: those must be reasoned. ``style="wiki"`` puts the facts under headings, one sentence
form a fact. ``style="prose"`` draws the form and the order of each sentence from the person's
number, so that no one pattern finds a fact in every article.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Literal, overload

import numpy as np

from ..documents import Corpus, Document
from ..errors import raise_unknown
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = [
    "STYLES",
    "ArticleStyle",
    "PersonIds",
    "PhantomCorpus",
    "document_id",
    "every_relatives",
    "stated_relatives",
]

ArticleStyle = Literal["wiki", "prose"]
STYLES = ("wiki", "prose")
Relatives = list[tuple[str, list[int]]]
_GENDERED = (
    ("parent", "mother", "father"),
    ("married", "wife", "husband"),
    ("sibling", "sister", "brother"),
    ("child", "daughter", "son"),
)
_STATED = (*(name for _, *pair in _GENDERED for name in pair), "friend")
_AT_ONCE = 1_000  # people whose relatives are found together
_LABELS = [(key, attribute.name) for key, attribute in ATTRIBUTES.items()]
_FORMAT = 1  # raise it when an article changes by a byte


def document_id(person: int) -> str:
    """Return the id of a person's article."""
    return f"p{person}"


class PersonIds(Sequence[str]):
    """The ids of everyone's article, made when they are asked for."""

    def __init__(self, people: int) -> None:
        self._range = range(people)

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self._range)

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[str]: ...
    def __getitem__(self, key: int | slice) -> str | Sequence[str]:
        """Return the id at a position, or those of a slice."""
        if isinstance(key, slice):
            return tuple(map(document_id, self._range[key]))
        return document_id(self._range[key])

    def position(self, item: str) -> int:
        """Return the person whose article has this id; KeyError if there is none."""
        digits = item[1:]
        if item[:1] != "p" or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            raise KeyError(item)
        person = int(digits)
        if person >= len(self) or document_id(person) != item:
            raise KeyError(item)
        return person


class PhantomCorpus(Corpus):
    """A world's articles as a corpus that holds arrays and not one text.

    Args:
        people: Who the articles are about.
        style: ``"wiki"`` or ``"prose"``.

    Raises:
        ConfigurationError: The style is unknown.
    """

    ids: PersonIds

    def __init__(self, people: People, style: ArticleStyle = "wiki") -> None:
        if style not in STYLES:
            raise_unknown("style", style, STYLES)
        self.people = people
        self.style = style
        self.name = f"phantom-{people.settings.split}-{people.settings.world_seed}"
        self.ids = PersonIds(len(people))
        self._text = _write_wiki if style == "wiki" else _write_prose
        settings = json.dumps([_FORMAT, style, asdict(people.settings)], sort_keys=True)
        self._known_fingerprint = hashlib.sha256(settings.encode()).hexdigest()

    def position(self, document_id: str) -> int:
        """Return the person whose article has this id; KeyError if there is none."""
        return self.ids.position(document_id)

    def __iter__(self) -> Iterator[Document]:
        """Give every article, in order, each rendered when it is asked for."""
        return map(self._write, range(len(self)), every_relatives(self.people))

    def _render(self, person: int) -> Document:
        return self._write(person, stated_relatives(self.people, person))

    def _write(self, person: int, relatives: Relatives) -> Document:
        name = self.people.name(person)
        linked = dict.fromkeys([other for _, others in relatives for other in others])
        return Document(
            id=document_id(person),
            title=name,
            text=self._text(self.people, person, name, relatives),
            links=tuple(map(document_id, linked)),
        )


def stated_relatives(people: People, person: int) -> Relatives:
    """Return the relations that a person's article states, each with its people, none empty."""
    kinship, is_female = people.kinship, people.is_female
    stated: Relatives = []
    for step, female, male in _GENDERED:
        group = kinship.stated(step, person)
        women = [other for other in group if is_female(other)]
        if women:
            stated.append((female, women))
        if len(women) < len(group):
            stated.append((male, [other for other in group if not is_female(other)]))
    if friends := kinship.stated("friend", person):
        stated.append(("friend", friends))
    return stated


def every_relatives(people: People) -> Iterator[Relatives]:
    """Give the ``stated_relatives`` of everyone, in order: by arrays, some people at a time."""
    for first in range(0, len(people), _AT_ONCE):
        group = np.arange(first, min(first + _AT_ONCE, len(people)), dtype=np.int32)
        rows = []
        for relation, (sources, others) in people.kinship.every_pair(group, _STATED).items():
            offsets = np.searchsorted(sources, np.arange(len(group) + 1))
            rows.append((relation, offsets.tolist(), others.tolist()))
        for place in range(len(group)):
            yield [
                (relation, others[offsets[place] : offsets[place + 1]])
                for relation, offsets, others in rows
                if offsets[place] < offsets[place + 1]
            ]


def _write_wiki(people: People, person: int, name: str, relatives: Relatives) -> str:
    family: list[str] = []
    friends: list[str] = []
    for relation, others in relatives:
        if len(others) == 1:
            line = f"The {relation} of {name} is {people.name(others[0])}."
        else:
            line = f"The {relation}s of {name} are {', '.join(map(people.name, others))}."
        (friends if relation == "friend" else family).append(line)
    value = people.value
    attributes = [f"The {label} of {name} is {value(person, key)}." for key, label in _LABELS]
    attributes.append(f"The gender of {name} is {_gender(people, person)}.")
    sections = (("Family", family), ("Friends", friends), ("Attributes", attributes))
    body = "\n\n".join([f"## {head}\n" + "\n".join(lines) for head, lines in sections if lines])
    return f"# {name}\n\n{body}\n"


def _write_prose(people: People, person: int, name: str, relatives: Relatives) -> str:
    draws = _draws(person)
    facts = [
        (_ATTRIBUTE_FORMS[key], people.value(person, key)) for key in ATTRIBUTES if key != "birth"
    ]
    sentences = [
        _choose(forms, draws).format(name=name, value=value, a=_article(value))
        for forms, value in facts
    ]
    sentences += [
        _choose(_RELATION_FORMS if len(others) == 1 else _RELATIONS_FORMS, draws).format(
            name=name, relation=relation, names=_listed(map(people.name, others)), count=len(others)
        )
        for relation, others in relatives
    ]
    order = sorted(range(len(sentences)), key=lambda place: (next(draws), place))
    born = _choose(_BIRTH_FORMS, draws).format(
        name=name, value=people.value(person, "birth"), gender=_gender(people, person)
    )
    return " ".join([born, *(sentences[place] for place in order)]) + "\n"


_BIRTH_FORMS = (
    "{name} ({gender}) was born on {value}.",
    "{name}, {gender}, came into the world on {value}.",
    "On {value} {name} was born, of {gender} gender.",
    "The life of {name} ({gender}) began on {value}.",
)
_ATTRIBUTE_FORMS = {
    "occupation": (
        "{name} earns a living as {a} {value}.",
        "By occupation {name} is {a} {value}.",
        "The trade that feeds {name} is that of {a} {value}.",
        "{name} has long worked as {a} {value}.",
    ),
    "hobby": (
        "Free hours of {name} go into {value}.",
        "The hobby of {name} is {value}.",
        "{name} is fond of {value}.",
        "On idle days one meets {name} busy with {value}.",
    ),
    "birthplace": (
        "{name} comes from {value}.",
        "The birthplace of {name} is {value}.",
        "{value} is where {name} was born.",
        "It was in {value} that {name} first saw daylight.",
    ),
    "dish": (
        "No meal pleases {name} more than {value}.",
        "The favourite dish of {name} is {value}.",
        "{name} would eat {value} every day.",
        "Guests of {name} are served {value}, the best loved dish of the house.",
    ),
    "instrument": (
        "{name} plays the {value}.",
        "The instrument of {name} is the {value}.",
        "In the evening {name} takes up the {value}.",
        "{name} owns {a} {value} and plays it well.",
    ),
}
_RELATION_FORMS = (
    "The {relation} of {name} is {names}.",
    "{names} is the {relation} of {name}.",
    "{name} has one {relation}, {names}.",
    "{name} calls {names} {relation}.",
)
_RELATIONS_FORMS = (
    "The {relation}s of {name} are {names}.",
    "{names} are the {relation}s of {name}.",
    "{name} has {count} {relation}s: {names}.",
    "As {relation}s {name} names {names}.",
)


def _draws(person: int) -> Iterator[int]:
    """Give numbers below 2**32 that depend on the person alone (a linear congruence, mixed)."""
    state = person * 2_654_435_761 + 12_345
    while True:
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
        yield (state ^ state >> 15) * 0x2C1B3C6D >> 8 & 0xFFFFFFFF


def _choose(forms: Sequence[str], draws: Iterator[int]) -> str:
    return forms[next(draws) % len(forms)]


def _article(value: str) -> str:
    return "an" if value[0] in "aeiou" else "a"


def _listed(names: Iterator[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _gender(people: People, person: int) -> str:
    return "female" if people.is_female(person) else "male"
