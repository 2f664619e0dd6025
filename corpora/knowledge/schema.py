"""Schemas: entity types, relations with their constraints, attributes, and published sentences.

A schema is data, read from JSON or YAML::

    name: hamlets
    zipf: 0.8
    types:
      person: {plural: people, share: 0.8, names: ["{g} {w}"], leads: ["{s} is a person."]}
      hamlet: {plural: hamlets, share: 0.2, names: ["{w}ton"], leads: ["{s} is a hamlet."]}

Attributes:
      - {name: birth, type: person, kind: date, low: 1800, high: 1950, noun: date of birth,
         says: ["{s} was born on {v}."]}
    relations:
      - {name: home, domain: person, range: hamlet, cardinality: n-1, share: 1.0, noun: home,
         inverse: villager, says: ["{s} lives in {o}."], inverse_says: ["{o} houses {s}."]}

In a sentence ``{s}`` is the subject, ``{o}`` the object, ``{v}`` a value; in a name ``{w}`` is an
invented word and ``{g}`` an invented given name. A schema that cannot be satisfied is refused.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import ConfigurationError, MissingExtraError, raise_unknown

__all__ = [
    "Attribute",
    "Cardinality",
    "EntityType",
    "Relation",
    "Schema",
    "encyclopedia",
    "load_schema",
]

Cardinality = Literal["1-1", "n-1", "1-n", "n-n"]
_CARDINALITIES = ("1-1", "1-n", "n-1", "n-n")
_KINDS = ("count", "date", "measure")
_SLOT = re.compile(r"\{(\w*)\}")
_ENDS_IN_Y = re.compile("[^aeiou]y$")
_YEARS = (1, 9_990)
Entry = TypeVar("Entry", "EntityType", "Attribute", "Relation")


@dataclass(frozen=True, slots=True)
class EntityType:
    """One type of entity.

    Attributes:
        name: As in questions, in the singular.
        plural: As in questions.
        share: How much of a world it makes up; shares are divided by their sum.
        names: Forms of names, each with one ``{w}``.
        leads: First sentences of articles, each starting with ``{s}``.
        pronouns: What stands for an entity; an entity keeps one of them.
    """

    name: str
    plural: str
    share: float
    names: tuple[str, ...]
    leads: tuple[str, ...]
    pronouns: tuple[str, ...] = ("It",)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A number or a date that every entity of a type has.

    Attributes:
        name: Unique in its type.
        type: Of what it is an attribute.
        kind: ``"date"`` (a day), ``"count"`` (a whole number) or ``"measure"`` (one decimal).
        low: The least value, in units; for a date the first year.
        high: The greatest value, in units; for a date the last year.
        noun: As in questions.
        says: Sentences that state it.
        unit: What is counted or measured in; empty for dates.
    """

    name: str
    type: str
    kind: Literal["date", "count", "measure"]
    low: float
    high: float
    noun: str
    says: tuple[str, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed relation and what it demands.

    Attributes:
        name: Unique.
        domain: The type of subjects.
        range: The type of objects.
        cardinality: Subjects to objects: ``"n-1"`` gives a subject one object at most.
        share: The share of subjects that have an object; of objects, for ``"1-n"``.
        noun: What the object is to the subject.
        inverse: What the subject is to the object.
        says: Sentences of the subject's article.
        inverse_says: Sentences of the object's article.
        plural: Of ``noun``.
        plural_inverse: Of ``inverse``.
        inverse_of: What comes before the object to mean the subject; "<inverse> of" if empty.
        acyclic: No path along the relation comes back.
        gap_years: How many years the object must be the older, by first dates; the subject for
            ``"1-n"``.
    """

    name: str
    domain: str
    range: str
    cardinality: Cardinality
    share: float
    noun: str
    inverse: str
    says: tuple[str, ...]
    inverse_says: tuple[str, ...]
    plural: str = ""
    plural_inverse: str = ""
    inverse_of: str = ""
    acyclic: bool = False
    gap_years: int | None = None

    @property
    def has_one_object(self) -> bool:
        """Tell whether a subject has at most one object."""
        return self.cardinality in ("1-1", "n-1")

    @property
    def has_one_subject(self) -> bool:
        """Tell whether an object has at most one subject."""
        return self.cardinality in ("1-1", "1-n")

    def phrase(self, *, is_inverse: bool) -> str:
        """Return what leads from the name of one end to the other, as "birthplace of"."""
        word = self.label(is_inverse=is_inverse)
        return (self.inverse_of if is_inverse else "") or f"{word} of"

    def label(self, *, is_inverse: bool, is_plural: bool = False) -> str:
        """Return what one end is to the other, as in questions."""
        single, many = (self.noun, self.plural), (self.inverse, self.plural_inverse)
        word, plural = many if is_inverse else single
        if not is_plural:
            return word
        return plural or (f"{word[:-1]}ies" if _ENDS_IN_Y.search(word) else f"{word}s")


@dataclass(frozen=True)
class Schema:
    """Everything that may be true in a world, and how it is said.

    Attributes:
        name: What it is called in messages and ids.
        types: The entity types.
        attributes: The attributes of all types.
        relations: The relations.
        zipf: The exponent of popularity: the r-th most popular entity of a type is drawn with
            weight ``(r + 1) ** -zipf`` (Zipf 1949, "Human Behaviour and the Principle of Least
            Effort"). 0 makes all alike.

    Raises:
        ConfigurationError: The schema cannot be satisfied; the message says why.
    """

    name: str
    types: tuple[EntityType, ...]
    attributes: tuple[Attribute, ...]
    relations: tuple[Relation, ...]
    zipf: float = 0.8

    def __post_init__(self) -> None:
        """Check that a world can satisfy it."""
        if not self.types or not self.relations:
            self._refuse("it needs at least one type and one relation")
        if not 0 <= self.zipf <= 3:
            self._refuse(f"zipf must be between 0 and 3, got {self.zipf!r}")
        _check_unique(self, "type", [entry.name for entry in self.types])
        _check_unique(self, "relation", [entry.name for entry in self.relations])
        for entry in self.types:
            self._check_type(entry)
        for attribute in self.attributes:
            self._check_attribute(attribute)
        for relation in self.relations:
            self._check_relation(relation)
            self._check_order(relation)
        _check_unique(self, "sentence", list(self._skeletons()))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Schema":
        """Build a schema from plain data, as a JSON or YAML file holds it.

        Raises:
            ConfigurationError: A field is missing, unknown or of the wrong kind, or the schema
                cannot be satisfied.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("types"), Mapping):
            raise ConfigurationError("a schema must be a mapping with types, each by its name")
        _check_fields("schema", values, cls)
        try:
            types = [{"name": name, **entry} for name, entry in values["types"].items()]
            return cls(
                name=str(values.get("name", "schema")),
                types=tuple(_entry(EntityType, entry) for entry in types),
                attributes=tuple(_entry(Attribute, e) for e in values.get("attributes", ())),
                relations=tuple(_entry(Relation, e) for e in values.get("relations", ())),
                zipf=float(values.get("zipf", 0.8)),
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(f"the schema cannot be read: {error}") from None

    @cached_property
    def type_numbers(self) -> dict[str, int]:
        """The place of each type, by name."""
        return {entry.name: place for place, entry in enumerate(self.types)}

    @cached_property
    def relation(self) -> dict[str, Relation]:
        """The relations by name."""
        return {entry.name: entry for entry in self.relations}

    def attributes_of(self, type_name: str) -> tuple[Attribute, ...]:
        """Return the attributes of a type, in the schema's order."""
        return tuple(entry for entry in self.attributes if entry.type == type_name)

    def first_date(self, type_name: str) -> Attribute | None:
        """Return the date that says which of two entities is the older; None without dates."""
        dates = (entry for entry in self.attributes_of(type_name) if entry.kind == "date")
        return next(dates, None)

    def _check_type(self, entry: EntityType) -> None:
        if not entry.share > 0:
            self._refuse(f"type {entry.name!r}: share must be above 0, got {entry.share!r}")
        if not entry.names or not entry.leads or not entry.pronouns:
            self._refuse(f"type {entry.name!r} needs names, leads and pronouns")
        for form in entry.names:
            if sorted(_SLOT.findall(form)) not in (["w"], ["g", "w"]) or re.search(
                r",|\band\b|\.", form
            ):
                self._refuse(
                    f"type {entry.name!r}: name {form!r} must hold {{w}} once, may hold {{g}} "
                    "once, and neither comma, full stop nor 'and'"
                )
        for lead in entry.leads:
            if not lead.startswith("{s} ") or not lead.endswith("."):
                self._refuse(f"type {entry.name!r}: lead {lead!r} must be '{{s}} ... .'")

    def _check_attribute(self, entry: Attribute) -> None:
        self._check_known(f"attribute {entry.name!r}", entry.type)
        if entry.kind not in _KINDS:
            raise_unknown("attribute kind", entry.kind, _KINDS)
        if not entry.low < entry.high:
            self._refuse(f"attribute {entry.name!r}: low {entry.low} must be below {entry.high}")
        if entry.kind == "date" and not (_YEARS[0] <= entry.low and entry.high <= _YEARS[1]):
            self._refuse(f"attribute {entry.name!r}: years must be within {_YEARS}")
        if entry.kind != "date" and entry.low < 0:
            self._refuse(f"attribute {entry.name!r}: low must be at least 0, got {entry.low}")
        if (entry.kind == "date") == bool(entry.unit):
            self._refuse(
                f"attribute {entry.name!r}: a {entry.kind} has {{}} unit".format(
                    "no" if entry.kind == "date" else "a"
                )
            )
        self._check_sentences(entry.name, entry.says, ["s", "v"])
        same = [other for other in self.attributes_of(entry.type) if other.name == entry.name]
        if len(same) > 1 or entry.name in self.relation:
            self._refuse(f"attribute {entry.name!r} of {entry.type!r} appears twice")

    def _check_relation(self, entry: Relation) -> None:
        for end in (entry.domain, entry.range):
            self._check_known(f"relation {entry.name!r}", end)
        if entry.cardinality not in _CARDINALITIES:
            raise_unknown("cardinality", entry.cardinality, _CARDINALITIES)
        if not 0 < entry.share <= 1:
            self._refuse(f"relation {entry.name!r}: share must be above 0 and at most 1")
        self._check_sentences(entry.name, entry.says, ["o", "s"])
        self._check_sentences(entry.name, entry.inverse_says, ["o", "s"])
        sizes = {kind.name: kind.share for kind in self.types}
        if entry.cardinality == "1-1" and sizes[entry.domain] * entry.share > sizes[entry.range]:
            self._refuse(
                f"relation {entry.name!r} is 1-1, but more {entry.domain!r} take part "
                f"({sizes[entry.domain] * entry.share:g}) than there are {entry.range!r} "
                f"({sizes[entry.range]:g})"
            )

    def _check_order(self, entry: Relation) -> None:
        if entry.acyclic and entry.domain != entry.range:
            self._refuse(f"relation {entry.name!r} joins two types, so acyclic says nothing")
        if entry.acyclic and entry.share == 1:
            self._refuse(
                f"relation {entry.name!r} is acyclic and every {entry.domain!r} must have it: "
                "the first one cannot; lower its share"
            )
        if entry.gap_years is None:
            return
        old, young = entry.range, entry.domain
        if entry.cardinality == "1-n":
            old, young = young, old
        first, last = self.first_date(old), self.first_date(young)
        if first is None or last is None:
            self._refuse(f"relation {entry.name!r} has gap_years, but an end has no date")
        elif first.low + entry.gap_years > last.high:
            self._refuse(
                f"relation {entry.name!r}: no {old!r} can be {entry.gap_years} years older than "
                f"a {young!r}"
            )

    def _check_known(self, what: str, type_name: str) -> None:
        if type_name not in self.type_numbers:
            raise_unknown(f"type of {what}", type_name, self.type_numbers)

    def _check_sentences(self, name: str, forms: tuple[str, ...], slots: list[str]) -> None:
        if not forms:
            self._refuse(f"{name!r} has no sentence")
        for form in forms:
            if sorted(_SLOT.findall(form)) != slots or not form.endswith("."):
                self._refuse(f"{name!r}: {form!r} must hold {slots} once each and end in '.'")

    def _skeletons(self) -> Iterable[str]:
        """Give every sentence without the names of its slots: two alike could not be told apart."""
        by_type = {entry.name: entry for entry in self.types}
        for attribute in self.attributes:
            unit = by_type[attribute.type].name if attribute.kind == "date" else attribute.unit
            for form in dict.fromkeys(attribute.says):
                yield _SLOT.sub("_", form) + unit
        for relation in self.relations:
            for form in dict.fromkeys(relation.says + relation.inverse_says):
                yield _SLOT.sub("_", form)

    def _refuse(self, reason: str) -> None:
        raise ConfigurationError(f"schema {self.name!r} cannot be satisfied: {reason}")


def load_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema from a ``.json``, ``.yaml`` or ``.yml`` file.

    Raises:
        ConfigurationError: The file cannot be read, or its schema cannot be satisfied.
        MissingExtraError: The file is YAML and PyYAML is not installed.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"schema {str(file)!r} cannot be read: {error}") from None
    if file.suffix in (".yaml", ".yml"):
        return Schema.from_mapping(_read_yaml(text, file))
    try:
        return Schema.from_mapping(json.loads(text))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"schema {str(file)!r} is not JSON: {error}") from None


@cache
def encyclopedia() -> Schema:
    """Return the schema that comes with the package: 15 types, 54 relations, 26 attributes."""
    return load_schema(Path(__file__).parent / "encyclopedia.json")


def _read_yaml(text: str, file: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("PyYAML", "yaml") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"schema {str(file)!r} is not YAML: {error}") from None


def _entry(kind: type[Entry], values: Mapping[str, Any]) -> Entry:
    _check_fields(f"{kind.__name__} {values.get('name')!r}", values, kind)
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    build: Callable[..., Entry] = kind
    return build(**given)


def _check_fields(what: str, values: Mapping[str, Any], kind: type[Any]) -> None:
    known = [field.name for field in fields(kind)]
    for name in values:
        if name not in known:
            raise_unknown(f"field of {what}", name, known)


def _check_unique(schema: Schema, what: str, names: list[str]) -> None:
    for name, number in sorted(Counter(names).items()):
        if number > 1:
            raise ConfigurationError(
                f"schema {schema.name!r} cannot be satisfied: {what} {name!r} appears twice"
            )
