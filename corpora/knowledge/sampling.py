"""Draws the edges of one relation: Zipf popularity, cardinality, order and age gaps."""

import math

import numpy as np
from numpy.typing import NDArray

from .schema import Relation

__all__ = ["draw_pairs"]

_DAYS_OF_A_YEAR = 365.25
_MOST_OBJECTS = 6  # of a subject, for n-n
_ONE_MORE = 0.45  # the chance of each further object, for n-n
_CHAIN = 4  # entities that an acyclic 1-1 relation puts in a row
Ages = NDArray[np.int64]
Places = NDArray[np.int64]
Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]


def draw_pairs(
    relation: Relation,
    blocks: tuple[range, range],
    ages: tuple[Ages, Ages],
    zipf: float,
    rng: np.random.Generator,
) -> Pairs:
    """Return subjects and objects, each of shape (edges,).

    Args:
        relation: What the edges must keep to.
        blocks: The entities of the domain and of the range.
        ages: For each of these a number that is lower for the older.
        zipf: The exponent of popularity.
        rng: Where every draw comes from.
    """
    domain, range_ = ages
    is_one_type = relation.domain == relation.range
    if relation.cardinality == "1-1":
        if is_one_type and relation.acyclic:
            young, old = _draw_rows(len(domain), relation.share, domain, rng)
        elif is_one_type:
            young, old = _draw_ring(len(domain), relation.share, rng)
        else:
            young, old = _draw_matching(len(domain), len(range_), relation.share, rng)
        keep = _is_apart(relation, domain[young], range_[old])
        return _numbered(young[keep], old[keep], blocks)
    if relation.cardinality == "1-n":
        young, old = _draw_picks(relation, range_, domain, zipf, rng)
        return _numbered(old, young, blocks)
    return _numbered(*_draw_picks(relation, domain, range_, zipf, rng), blocks)


def _numbered(subjects: Places, objects: Places, blocks: tuple[range, range]) -> Pairs:
    domain, range_ = blocks
    return (
        (subjects + domain.start).astype(np.int32),
        (objects + range_.start).astype(np.int32),
    )


def _is_apart(relation: Relation, young: Ages, old: Ages) -> NDArray[np.bool_]:
    if relation.gap_years is None:
        return np.ones(len(young), np.bool_)
    apart: NDArray[np.bool_] = old <= young - relation.gap_years * _DAYS_OF_A_YEAR
    return apart


def _draw_rows(
    size: int, share: float, ages: Ages, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Put some entities in short rows by age and link each to the one before it."""
    rows = min(size, math.ceil(share * size * _CHAIN / (_CHAIN - 1))) // _CHAIN
    chosen = rng.permutation(size)[: max(1, rows) * _CHAIN].reshape(-1, min(_CHAIN, size))
    order = np.lexsort((chosen, ages[chosen]), axis=1)
    chosen = np.take_along_axis(chosen, order, axis=1)
    return chosen[:, 1:].ravel(), chosen[:, :-1].ravel()


def _draw_ring(size: int, share: float, rng: np.random.Generator) -> tuple[Places, Places]:
    """Link some entities to the next of a random ring."""
    ring = rng.permutation(size)
    number = min(size, max(1, round(share * size)))
    return ring[:number], np.roll(ring, -1)[:number]


def _draw_matching(
    subjects: int, objects: int, share: float, rng: np.random.Generator
) -> tuple[Places, Places]:
    number = min(subjects, objects, max(1, round(share * subjects)))
    return rng.permutation(subjects)[:number], rng.permutation(objects)[:number]


def _draw_picks(
    relation: Relation, young: Ages, old: Ages, zipf: float, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Let each of the young pick among the old that are old enough, the popular more often."""
    picking = np.flatnonzero(rng.random(len(young)) < relation.share)
    if relation.cardinality == "n-n":
        number = np.minimum(rng.geometric(1 - _ONE_MORE, len(picking)), _MOST_OBJECTS)
        picking = np.repeat(picking, number)
    by_age = np.argsort(old, kind="stable")
    weights = (rng.permutation(len(old)) + 2.0) ** -zipf
    reach = np.concatenate(([0.0], np.cumsum(weights)))
    eligible = np.full(len(picking), len(old))
    if relation.gap_years is not None:
        latest = young[picking] - relation.gap_years * _DAYS_OF_A_YEAR
        eligible = np.searchsorted(old[by_age], latest, side="right")
    if relation.acyclic:
        rank = np.empty(len(old), np.int64)
        rank[by_age] = np.arange(len(old))
        eligible = np.minimum(eligible, rank[picking])
    drawn = rng.random(len(picking)) * reach[eligible]
    picked = by_age[np.minimum(np.searchsorted(reach, drawn, side="right") - 1, len(old) - 1)]
    keep = eligible > 0
    if relation.domain == relation.range:
        keep &= picking != picked
    return picking[keep], picked[keep]
