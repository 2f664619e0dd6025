"""A reader that turns articles back into triples, from the schema's published sentences alone.

It shares no code with the writer: a sentence is looked up by its rarest word, the sentence forms
found there are tried as regular expressions, and a match counts only where both ends are known
titles, or a pronoun that stands for the article's own title. A document that says of itself that
it is superseded states nothing.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable
from typing import NamedTuple

from ..documents import Document
from .schema import Attribute, Relation, Schema

__all__ = ["Reader", "Triple"]

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_SLOT = re.compile(r"\\\{(\w)\\\}")
_STALE = "superseded and kept for the record"


class Triple(NamedTuple):
    """Something an article states; names and values are as written there."""

    subject: str
    predicate: str
    object: str


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    predicate: str
    unit: str | None  # None for relations


class Reader:
    """Reads the articles of worlds with a schema.

    Args:
        schema: Whose sentences to know.
        titles: Every name there is, as a search engine's titles would give them.
    """

    def __init__(self, schema: Schema, titles: Container[str]) -> None:
        self._titles = titles
        self._pronouns = {word for kind in schema.types for word in kind.pronouns}
        entries: list[Attribute | Relation] = [*schema.attributes, *schema.relations]
        texts = [(text, entry) for entry in entries for text in _texts(entry)]
        common = Counter(word for text, _ in texts for word in set(_words(text)))
        self._forms: dict[str, list[_Form]] = {}
        for text, entry in texts:
            rarest = min(_words(text), key=lambda word: (common[word], word))
            unit = None if isinstance(entry, Relation) else entry.unit
            self._forms.setdefault(rarest, []).append(_Form(_compiled(text), entry.name, unit))

    def read(self, document: Document) -> list[Triple]:
        """Return what a document states, in its order."""
        if _STALE in document.text.split(".", 1)[0]:
            return []
        return [
            triple
            for sentence in _SENTENCE_END.split(document.text.replace("\n", " "))
            for triple in self._read_sentence(sentence, document.title)
        ]

    def _read_sentence(self, sentence: str, title: str) -> Iterable[Triple]:
        seen: dict[Triple, None] = {}
        for word in dict.fromkeys(_WORD.findall(sentence)):
            for form in self._forms.get(word, ()):
                if match := form.pattern.fullmatch(sentence):
                    for triple in self._triples(form, match.groupdict(), title):
                        seen[triple] = None
        return seen

    def _triples(self, form: _Form, found: dict[str, str], title: str) -> list[Triple]:
        subjects = self._names(found["s"], title)
        if form.unit is not None:
            if not found["v"].endswith(form.unit) or not subjects:
                return []
            return [Triple(subjects[0], form.predicate, found["v"])]
        objects = self._names(found["o"], title)
        return [Triple(s, form.predicate, o) for s in subjects for o in objects]

    def _names(self, text: str, title: str) -> list[str]:
        if text in self._pronouns:
            return [title]
        if text in self._titles:
            return [text]
        names = re.split(r", | and ", text)
        return names if all(name in self._titles for name in names) else []


def _texts(entry: Attribute | Relation) -> tuple[str, ...]:
    return entry.says + (entry.inverse_says if isinstance(entry, Relation) else ())


def _words(text: str) -> list[str]:
    return _WORD.findall(re.sub(r"\{\w\}", " ", text))


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(_SLOT.sub(r"(?P<\1>.+)", re.escape(text)))
