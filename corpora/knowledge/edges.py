"""The edges of one relation as arrays, followed in both directions, and where each is stated."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["COVERAGES", "MOST_LISTED", "Coverage", "Edges"]

Coverage = Literal["both", "subject", "object", "either"]
COVERAGES = ("both", "subject", "object", "either")
MOST_LISTED = 8  # an article names so many of a relation; the other end's article has the rest
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class Edges:
    """All edges of a relation. An edge is named by its place in the order (subject, object).

    Attributes:
        subjects: The subject of each edge, shape (edges,).
        objects: The object of each edge, shape (edges,).
        by_object: The edges in the order (object, subject), shape (edges,).
        first_subject: The lowest entity of the domain.
        first_object: The lowest entity of the range.
        out_offsets: Where each subject's edges begin, shape (subjects + 1,).
        in_offsets: Where each object's edges begin in ``by_object``, shape (objects + 1,).
        in_subject: Whether the subject's article states the edge, shape (edges,).
        in_object: Whether the object's article states it, shape (edges,).
    """

    subjects: memoryview
    objects: memoryview
    by_object: memoryview
    first_subject: int
    first_object: int
    out_offsets: memoryview
    in_offsets: memoryview
    in_subject: memoryview
    in_object: memoryview

    @classmethod
    def build(
        cls,
        pairs: tuple[Numbers, Numbers],
        domain: range,
        range_: range,
        coverage: Coverage,
        rng: np.random.Generator,
    ) -> "Edges":
        """Order the pairs (subjects, objects), drop repeats, and settle what states each.

        Args:
            pairs: The two ends of each edge, shape (edges,) each.
            domain: The entities that may be subjects.
            range_: The entities that may be objects.
            coverage: Which end's article states an edge.
            rng: Tosses the coins of ``"either"``.
        """
        keys = np.unique(pairs[0].astype(np.int64) << 32 | pairs[1].astype(np.int64))
        subjects, objects = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        by_object = np.lexsort((subjects, objects)).astype(np.int32)
        out_offsets = _offsets(subjects, domain)
        in_offsets = _offsets(objects, range_)
        out_place = np.arange(len(keys)) - out_offsets[subjects - domain.start]
        in_place = np.empty(len(keys), np.int64)
        in_place[by_object] = np.arange(len(keys)) - in_offsets[objects[by_object] - range_.start]
        in_subject, in_object = _stated(out_place, in_place, coverage, rng)
        # A memoryview gives one item as a Python number, several times faster than an array.
        return cls(
            subjects.data,
            objects.data,
            by_object.data,
            domain.start,
            range_.start,
            out_offsets.data,
            in_offsets.data,
            in_subject.data,
            in_object.data,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle arrays in place of views."""
        values = [getattr(self, field.name) for field in fields(self)]
        return _thaw, tuple(np.asarray(v) if isinstance(v, memoryview) else v for v in values)

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.subjects)

    def out_edges(self, subject: int) -> Sequence[int]:
        """Return the edges of a subject of the domain, sorted by object."""
        place = subject - self.first_subject
        return range(self.out_offsets[place], self.out_offsets[place + 1])

    def in_edges(self, entity: int) -> Sequence[int]:
        """Return the edges of an object of the range, sorted by subject."""
        place = entity - self.first_object
        edges: list[int] = self.by_object[
            self.in_offsets[place] : self.in_offsets[place + 1]
        ].tolist()
        return edges

    def edge(self, subject: int, entity: int) -> int | None:
        """Return the edge between two entities, or None."""
        return next((e for e in self.out_edges(subject) if self.objects[e] == entity), None)

    def others(self, entity: int, *, is_inverse: bool) -> tuple[int, ...]:
        """Return a subject's objects, or with ``is_inverse`` an object's subjects, sorted."""
        if is_inverse:
            return tuple([self.subjects[edge] for edge in self.in_edges(entity)])
        edges = self.out_edges(entity)
        return tuple(self.objects[edges[0] : edges[-1] + 1]) if edges else ()


def _thaw(*values: Any) -> Edges:
    held: list[Any] = [v.data if isinstance(v, np.ndarray) else v for v in values]
    return Edges(*held)


def _offsets(ends: Numbers, block: range) -> NDArray[np.int64]:
    counts = np.bincount(ends - block.start, minlength=len(block))
    return np.concatenate(([0], np.cumsum(counts)))


def _stated(
    out_place: NDArray[np.int64],
    in_place: NDArray[np.int64],
    coverage: Coverage,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell for each edge whether its subject's and its object's article states it.

    An article that has its fill of a relation leaves the edge to the other end; where both have,
    the subject's article takes it. So every edge is stated somewhere.
    """
    fits_object = in_place < MOST_LISTED
    fits_subject = (out_place < MOST_LISTED) | ~fits_object
    prefers_subject = np.full(len(out_place), coverage == "subject")
    if coverage == "either":
        prefers_subject = rng.random(len(out_place)) < 0.5
    if coverage == "both":
        return fits_subject, fits_object
    in_subject = np.where(prefers_subject, fits_subject, ~fits_object)
    return in_subject, ~in_subject
