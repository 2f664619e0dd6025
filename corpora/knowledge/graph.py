"""A knowledge graph drawn from one seed: every constraint of its schema holds."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigurationError, raise_unknown
from .edges import COVERAGES, Coverage, Edges
from .names import Names, WorldSplit
from .sampling import draw_pairs
from .schema import Attribute, EntityType, Schema

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MAX_ENTITIES", "Graph", "WorldSettings", "document_id", "value_text"]

MAX_ENTITIES = 2_000_000
_LEAST_OF_A_TYPE = 4
_NAMES_KEPT = 100_000
_ROWS_KEPT = 200_000
_MONTHS = (
    "January February March April May June July August September October November December".split()
)


def document_id(entity: int) -> str:
    """Return the id of an entity's article, which is also the entity's id."""
    return f"e{entity}"


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """All but the schema that decides what a world holds.

    Attributes:
        entities: How many, at least four a type, at most ``MAX_ENTITIES``.
        world_seed: Where every draw comes from, 0 or more.
        split: ``"train"`` or ``"test"``; worlds of the two share no invented word.
        coverage: Which article states an edge: ``"both"`` ends, the ``"subject"``'s, the
            ``"object"``'s, or ``"either"`` by a coin.
        noise: Share of entities that have a side document with outdated claims, 0 to 1.

    Raises:
        ConfigurationError: A value is outside its range.
    """

    entities: int
    world_seed: int = 0
    split: WorldSplit = "train"
    coverage: Coverage = "both"
    noise: float = 0.0

    def __post_init__(self) -> None:
        """Check every value but the least number of entities, which is the schema's."""
        _check_whole("entities", self.entities, 1, MAX_ENTITIES)
        _check_whole("world_seed", self.world_seed, 0, 2**63 - 1)
        if self.split not in ("train", "test"):
            raise_unknown("split", self.split, ("train", "test"))
        if self.coverage not in COVERAGES:
            raise_unknown("coverage", self.coverage, COVERAGES)
        is_number = isinstance(self.noise, int | float) and not isinstance(self.noise, bool)
        if not is_number or not 0 <= self.noise <= 1:
            raise ConfigurationError(f"noise must be between 0 and 1, got {self.noise!r}")


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigurationError(
            f"{name} must be a whole number from {low} to {high}, got {value!r}"
        )


@dataclass(frozen=True, eq=False)
class Graph:
    """Entities by number, each type a block of them, and the edges of each relation.

    Attributes:
        schema: What may be true.
        blocks: The entities of each type, by the type's name, in the schema's order.
        edges: The edges of each relation, by its name, in the schema's order.
        values: For each (type, attribute) the value of each entity of the type, shape (of the
            type,): a proleptic Gregorian ordinal, a count, or tenths of a unit.
        name: Gives an entity's name; no two share one.
        settings: What it was drawn from; None for a real graph.
    """

    schema: Schema
    blocks: dict[str, range]
    edges: dict[str, Edges]
    values: dict[tuple[str, str], NDArray[np.int64]]
    name: Callable[[int], str]
    settings: WorldSettings | None = None

    @classmethod
    def draw(cls, schema: Schema, settings: WorldSettings) -> "Graph":
        """Draw a graph. Names, values and each relation have their own stream of the seed.

        Raises:
            ConfigurationError: There are too few entities for the schema's types.
        """
        least = _LEAST_OF_A_TYPE * len(schema.types)
        if settings.entities < least:
            raise ConfigurationError(
                f"entities must be a whole number from {least} to {MAX_ENTITIES} for the "
                f"{len(schema.types)} types of schema {schema.name!r}, got {settings.entities}"
            )
        seed = np.random.SeedSequence([settings.world_seed, settings.split == "test"])
        name_seed, value_seed, rank_seed, *streams = seed.spawn(3 + len(schema.relations))
        blocks = _blocks(schema, settings.entities)
        values = _draw_values(schema, blocks, np.random.default_rng(value_seed))
        names = Names.draw(settings.split, np.random.default_rng(name_seed))
        ages = _ages(schema, blocks, values, np.random.default_rng(rank_seed))
        edges = {}
        for relation, stream in zip(schema.relations, streams, strict=True):
            rng = np.random.default_rng(stream)
            domain, range_ = blocks[relation.domain], blocks[relation.range]
            pairs = draw_pairs(
                relation,
                (domain, range_),
                (ages[relation.domain], ages[relation.range]),
                schema.zipf,
                rng,
            )
            edges[relation.name] = Edges.build(pairs, domain, range_, settings.coverage, rng)
        return cls(schema, blocks, edges, values, _namer(names, schema, blocks), settings)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings alone where they give the same graph everywhere."""
        if self.settings is not None:
            return Graph.draw, (self.schema, self.settings)
        return Graph, (self.schema, self.blocks, self.edges, self.values, self.name)

    def __len__(self) -> int:
        """Return the number of entities."""
        return self._starts[-1]

    def type_of(self, entity: int) -> EntityType:
        """Return the type of an entity."""
        return self.schema.types[bisect_right(self._starts, entity) - 1]

    def number(self, entity: int, attribute: str) -> int:
        """Return the value of an attribute as it is held, to compare and to calculate."""
        kind = self.type_of(entity).name
        return int(self.values[kind, attribute][entity - self.blocks[kind].start])

    def value(self, entity: int, attribute: Attribute) -> str:
        """Return the value of an attribute as articles have it."""
        return value_text(attribute, self.number(entity, attribute.name))

    def relations_from(self, type_name: str) -> tuple[str, ...]:
        """Return the relations whose subjects have this type."""
        return self._ends[type_name][0]

    def relations_to(self, type_name: str) -> tuple[str, ...]:
        """Return the relations whose objects have this type."""
        return self._ends[type_name][1]

    def others(self, entity: int, relation: str, *, is_inverse: bool) -> tuple[int, ...]:
        """Return all that a relation leads to from an entity, sorted."""
        return self._others(entity, relation, is_inverse)

    def to_networkx(self) -> "nx.MultiDiGraph[str]":
        """Return the graph with ``e17`` nodes and an edge keyed by each relation.

        A node has ``name``, ``type``, and one entry an attribute: its number, and under
        ``"<attribute>:text"`` the text of it.
        """
        import networkx as nx  # takes a while, and most worlds are never exported to it

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(schema=self.schema.name)
        for node in self.nodes():
            graph.add_node(node.pop("id"), **node)
        for name, edges in self.edges.items():
            for subject, entity in zip(edges.subjects, edges.objects, strict=True):
                graph.add_edge(document_id(subject), document_id(entity), key=name)
        return graph

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Give each entity as plain data: id, name, type and attributes."""
        for kind, block in self.blocks.items():
            attributes = self.schema.attributes_of(kind)
            columns = [self.values[kind, entry.name].tolist() for entry in attributes]
            for place, entity in enumerate(block):
                node = {"id": document_id(entity), "name": self.name(entity), "type": kind}
                for attribute, column in zip(attributes, columns, strict=True):
                    node[attribute.name] = column[place]
                    node[f"{attribute.name}:text"] = value_text(attribute, column[place])
                yield node

    def to_json(self) -> dict[str, Any]:
        """Return the graph as plain data: ``nodes`` and ``edges`` (subject, relation, object)."""
        edges = [
            [document_id(subject), name, document_id(entity)]
            for name, held in self.edges.items()
            for subject, entity in zip(held.subjects, held.objects, strict=True)
        ]
        return {"schema": self.schema.name, "nodes": list(self.nodes()), "edges": edges}

    @cached_property
    def _others(self) -> Callable[[int, str, bool], tuple[int, ...]]:
        edges = self.edges
        return lru_cache(_ROWS_KEPT)(
            lambda entity, name, is_inverse: edges[name].others(entity, is_inverse=is_inverse)
        )

    @cached_property
    def _starts(self) -> list[int]:
        return [block.start for block in self.blocks.values()] + [
            max(block.stop for block in self.blocks.values())
        ]

    @cached_property
    def _ends(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        relations = self.schema.relations
        return {
            kind.name: (
                tuple(entry.name for entry in relations if entry.domain == kind.name),
                tuple(entry.name for entry in relations if entry.range == kind.name),
            )
            for kind in self.schema.types
        }


def _namer(names: Names, schema: Schema, blocks: Mapping[str, range]) -> Callable[[int], str]:
    """Return what gives an entity's name: a form of its type around a word of its own."""
    starts = [block.start for block in blocks.values()]

    @lru_cache(_NAMES_KEPT)
    def name(entity: int) -> str:
        forms = schema.types[bisect_right(starts, entity) - 1].names
        return names.name(forms[entity * 7_919 % 10_007 % len(forms)], entity)

    return name


def value_text(attribute: Attribute, number: int) -> str:
    """Put a value into words.

    Example:
        >>> height = Attribute("height", "hill", "measure", 1, 900, "height", ("{s}: {v}.",), "m")
        >>> value_text(height, 12345)
        '1,234.5 m'
    """
    if attribute.kind == "date":
        day = date.fromordinal(number)
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    if attribute.kind == "count":
        return f"{number:,} {attribute.unit}"
    return f"{number // 10:,}.{number % 10} {attribute.unit}"


def _blocks(schema: Schema, entities: int) -> dict[str, range]:
    """Share entities out by largest remainders, at least a few to each type."""
    spare = entities - _LEAST_OF_A_TYPE * len(schema.types)
    whole = sum(kind.share for kind in schema.types)
    exact = [kind.share / whole * spare for kind in schema.types]
    sizes = [_LEAST_OF_A_TYPE + math.floor(size) for size in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (sizes[i] - exact[i], i))
    for place in by_remainder[: entities - sum(sizes)]:
        sizes[place] += 1
    ends = np.cumsum([0, *sizes]).tolist()
    return {
        kind.name: range(ends[place], ends[place + 1]) for place, kind in enumerate(schema.types)
    }


def _draw_values(
    schema: Schema, blocks: Mapping[str, range], rng: np.random.Generator
) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Draw dates evenly, counts and measures evenly in their logarithm."""
    values = {}
    for entry in schema.attributes:
        size = len(blocks[entry.type])
        if entry.kind == "date":
            first, last = date(int(entry.low), 1, 1), date(int(entry.high), 12, 31)
            drawn = rng.integers(first.toordinal(), last.toordinal() + 1, size)
        else:
            scale = 10 if entry.kind == "measure" else 1
            low, high = math.log(max(entry.low, 0.1) * scale), math.log(entry.high * scale)
            drawn = np.exp(rng.uniform(low, high, size)).round().astype(np.int64)
        values[entry.type, entry.name] = drawn.astype(np.int64)
    return values


def _ages(
    schema: Schema,
    blocks: Mapping[str, range],
    values: Mapping[tuple[str, str], NDArray[np.int64]],
    rng: np.random.Generator,
) -> dict[str, NDArray[np.int64]]:
    """Return for each type the first dates of its entities; without dates, an order by chance."""
    ages = {}
    for kind, block in blocks.items():
        first = schema.first_date(kind)
        order = rng.permutation(len(block))
        ages[kind] = order if first is None else values[kind, first.name]
    return ages
