"""Real graphs through the same door: a folder of triples, labels and texts.

The folder holds tab-separated files in UTF-8, without headers::

    triples.tsv     head, relation, tail
    labels.tsv      id, label                  every id once, no two with one label
    texts.tsv       id, text                   what an article begins with; may lack some ids
    relations.tsv   relation, noun, inverse    optional: how questions name a relation

An article is the entity's text and then its triples, one in a sentence. Which article states a
triple is settled as in invented worlds, so that no article lists hundreds.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import CorpusError
from .edges import Coverage, Edges
from .graph import Graph
from .schema import Cardinality, EntityType, Relation, Schema

__all__ = ["TYPE", "read_triples"]

TYPE = "thing"


def read_triples(
    folder: str | os.PathLike[str], coverage: Coverage = "both"
) -> tuple[Graph, list[str]]:
    """Return a folder's graph, its entities in the order of labels.tsv, and their texts.

    Raises:
        CorpusError: A file is missing, or a line cannot be used; the message names both.
    """
    root = Path(folder)
    numbers: dict[str, int] = {}
    labels: dict[str, str] = {}
    for line, (entity, label) in _rows(root / "labels.tsv", 2):
        if entity in numbers or label in labels or not label.strip():
            problem = "id" if entity in numbers else "label"
            raise CorpusError(
                f"{root / 'labels.tsv'}, line {line}: {problem} is empty or was used before; "
                "each must be there once"
            )
        numbers[entity], labels[label] = len(numbers), entity
    texts = [""] * len(numbers)
    for line, (entity, text) in _rows(root / "texts.tsv", 2):
        texts[_number(numbers, entity, root / "texts.tsv", line)] = text
    pairs: dict[str, tuple[list[int], list[int]]] = {}
    for line, (head, name, tail) in _rows(root / "triples.tsv", 3):
        heads, tails = pairs.setdefault(name, ([], []))
        heads.append(_number(numbers, head, root / "triples.tsv", line))
        tails.append(_number(numbers, tail, root / "triples.tsv", line))
    if not pairs:
        raise CorpusError(f"{root / 'triples.tsv'}: no triples; it needs at least one")
    nouns = _nouns(root / "relations.tsv")
    block = range(len(numbers))
    edges: dict[str, Edges] = {}
    relations = []
    for name in sorted(pairs):
        ends = np.array(pairs[name], np.int32)
        edges[name] = Edges.build(
            (ends[0], ends[1]), block, block, coverage, np.random.default_rng(len(edges))
        )
        noun, inverse = nouns.get(name, (name.replace("_", " "), ""))
        relations.append(_relation(name, edges[name], noun, inverse))
    kind = EntityType(TYPE, f"{TYPE}s", 1.0, ("{w}",), ("{s} is a thing.",))
    schema = Schema(root.name or "triples", (kind,), (), tuple(relations))
    return Graph(schema, {TYPE: block}, edges, {}, list(labels).__getitem__), texts


def _relation(name: str, edges: Edges, noun: str, inverse: str) -> Relation:
    """Describe a relation by what its edges show."""
    many_objects = max(np.diff(edges.out_offsets)) > 1
    many_subjects = max(np.diff(edges.in_offsets)) > 1
    cardinality: Cardinality = "n-n"
    if not many_objects:
        cardinality = "n-1" if many_subjects else "1-1"
    elif not many_subjects:
        cardinality = "1-n"
    return Relation(
        name=name,
        domain=TYPE,
        range=TYPE,
        cardinality=cardinality,
        share=1.0,
        noun=noun,
        inverse=inverse or f"inverse {noun}",
        says=(f"The {noun} of {{s}} is {{o}}.",),
        inverse_says=(f"{{o}} is the {noun} of {{s}}.",),
        inverse_of="" if inverse else f"{TYPE} with the {noun}",
    )


def _nouns(path: Path) -> dict[str, tuple[str, str]]:
    if not path.exists():
        return {}
    return {name: (noun, inverse) for _, (name, noun, inverse) in _rows(path, 3)}


def _number(numbers: dict[str, int], entity: str, path: Path, line: int) -> int:
    if entity not in numbers:
        raise CorpusError(f"{path}, line {line}: {entity!r} is not in labels.tsv")
    return numbers[entity]


def _rows(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            for line, text in enumerate(file, start=1):
                row = text.rstrip("\r\n").split("\t")
                if row == [""]:
                    continue
                if len(row) != columns:
                    raise CorpusError(
                        f"{path}, line {line}: must have {columns} columns, got {len(row)}"
                    )
                yield line, row
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from None
