"""Replay: a bounded buffer of trajectories, in memory and on disk."""

import os
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ...corpora.errors import raise_unknown
from ...envs.rules import check_at_least
from .filter import Correct
from .pipeline import Stage, group_key, groups_of
from .trajectory import Trajectory, read_trajectories

__all__ = ["Draw", "Order", "ReplayBuffer", "Store"]

Order = Literal["recency", "reward", "difficulty"]
_ORDERS = ("recency", "reward", "difficulty")
_END = b"\n\n"  # an entry is its lines and an empty one: what a kill tore has none


class ReplayBuffer:
    """Keeps the best entries, an entry being a whole group or a single trajectory.

    The order says both what is dropped when it is full and what is drawn more often:
    ``recency`` prefers the latest, ``reward`` the highest mean reward, ``difficulty`` the
    success rate nearest to one half. Ties go to the later entry.

    On disk it is a file of trajectories, one a line, with an empty line after each entry, that
    ``read_trajectories`` reads. Entries are appended; a torn one at the end, left by a kill, is
    moved to a file ``.torn`` beside it when it is opened again. One process writes at a time.

    Args:
        capacity: How many entries it holds.
        path: The file; None to keep it in memory alone. What is there is read.
        order: What is worth keeping.
        unit: What an entry is.
        priority: How much more often a better entry is drawn: its weight is (1 / rank) to this
            power, as in prioritised replay (Schaul et al. 2016, arXiv:1511.05952); 0.0 draws
            evenly.

    Raises:
        ConfigurationError: An argument is out of range.
        CorpusError: The file holds something else.
    """

    def __init__(
        self,
        capacity: int,
        *,
        path: str | os.PathLike[str] | None = None,
        order: Order = "recency",
        unit: Literal["group", "trajectory"] = "group",
        priority: float = 0.0,
    ) -> None:
        check_at_least("capacity", capacity, 1)
        if order not in _ORDERS:
            raise_unknown("order", order, _ORDERS)
        if unit not in ("group", "trajectory"):
            raise_unknown("unit", unit, ("group", "trajectory"))
        self.capacity = capacity
        self.order: Order = order
        self.unit = unit
        self.priority = priority
        self._path = None if path is None else Path(path)
        self._entries: list[tuple[Trajectory, ...]] = []
        self._on_disk = 0
        if self._path is not None and self._path.exists():
            _set_torn_end_aside(self._path)
            for entry in self._read(self._path):
                self._keep(entry)
                self._on_disk += 1

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    @property
    def entries(self) -> Sequence[tuple[Trajectory, ...]]:
        """The entries, oldest first."""
        return tuple(self._entries)

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        """Take entries in, each on disk before the next; drop the worst if there are too many.

        Raises:
            ConfigurationError: The members of a group do not come one after the other.
        """
        for entry in self._split(trajectories):
            if self._path is not None:
                with open(self._path, "ab") as file:
                    file.write(_encode(entry))
                self._on_disk += 1
            self._keep(entry)
        if self._path is not None and self._on_disk > 2 * self.capacity:
            self._rewrite(self._path)

    def sample(
        self,
        count: int,
        generator: np.random.Generator,
        *,
        leaves_out: Container[Hashable] = frozenset(),
    ) -> list[Trajectory]:
        """Draw entries without putting back, and return their trajectories entry by entry.

        Args:
            count: How many entries; all, in a drawn order, if there are fewer.
            generator: Decides the draw.
            leaves_out: Keys, as of ``entry_key``, that are not drawn.
        """
        check_at_least("count", count, 0)
        places = [
            place
            for place, entry in enumerate(self._entries)
            if self.entry_key(entry[0]) not in leaves_out
        ]
        ranked = sorted(places, key=lambda place: (-self._worth(place), -place))
        if count == 0 or not ranked:
            return []
        weights = (1.0 / np.arange(1, len(ranked) + 1)) ** self.priority
        drawn = generator.choice(
            len(ranked), min(count, len(ranked)), replace=False, p=weights / weights.sum()
        )
        return [each for rank in drawn for each in self._entries[ranked[int(rank)]]]

    def entry_key(self, trajectory: Trajectory) -> Hashable:
        """Return what tells the entry of a trajectory from the others."""
        if trajectory.group and self.unit == "group":
            return group_key(trajectory)
        return (trajectory.env_hash, trajectory.task_id, trajectory.seed, trajectory.id)

    def _keep(self, entry: tuple[Trajectory, ...]) -> None:
        self._entries.append(entry)
        if len(self._entries) > self.capacity:
            places = range(len(self._entries))
            del self._entries[min(places, key=lambda place: (self._worth(place), place))]

    def _worth(self, place: int) -> float:
        """Return how much an entry is worth keeping; ties go to the later one."""
        entry = self._entries[place]
        if self.order == "reward":
            return sum(each.total_reward for each in entry) / len(entry)
        if self.order == "difficulty":
            return -abs(sum(map(Correct().keeps, entry)) / len(entry) - 0.5)
        return 0.0

    def _split(self, trajectories: Iterable[Trajectory]) -> Iterator[tuple[Trajectory, ...]]:
        if self.unit == "group":
            return map(tuple, groups_of(trajectories))
        return ((each,) for each in trajectories)

    def _read(self, path: Path) -> Iterator[tuple[Trajectory, ...]]:
        sizes = [entry.count(b"\n") + 1 for entry in path.read_bytes().split(_END) if entry]
        lines = read_trajectories(path)
        return (tuple(next(lines) for _ in range(size)) for size in sizes)

    def _rewrite(self, path: Path) -> None:
        """Write what is kept in place of all that was ever added."""
        new = path.with_name(path.name + ".new")
        new.write_bytes(b"".join(map(_encode, self._entries)))
        os.replace(new, path)
        self._on_disk = len(self)


@dataclass(frozen=True)
class Store(Stage):
    """Puts what comes by into a buffer, and gives it on.

    Attributes:
        buffer: Where it is put.
    """

    buffer: ReplayBuffer

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give each entry once it is stored."""
        if self.buffer.unit == "group":
            for group in groups_of(trajectories):
                self.buffer.add(group)
                yield from group
            return
        for trajectory in trajectories:
            self.buffer.add([trajectory])
            yield trajectory


@dataclass(frozen=True)
class Draw(Stage):
    """Gives what comes by, and then entries drawn from a buffer that did not come by.

    Attributes:
        buffer: Where it is drawn from.
        count: How many entries are drawn; those that came by are left out.
        seed: Decides the draw.
    """

    buffer: ReplayBuffer
    count: int
    seed: int = 0

    def __call__(self, trajectories: Iterable[Trajectory] = ()) -> Iterator[Trajectory]:
        """Give new ones first, then old ones."""
        came_by = set()
        for trajectory in trajectories:
            came_by.add(self.buffer.entry_key(trajectory))
            yield trajectory
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, 6]))
        yield from self.buffer.sample(self.count, generator, leaves_out=came_by)


def _encode(entry: Iterable[Trajectory]) -> bytes:
    return ("\n".join(each.to_json() for each in entry)).encode() + _END


def _set_torn_end_aside(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(_END) + len(_END) if _END in content else 0
    if whole < len(content):
        with open(path.with_name(path.name + ".torn"), "ab") as file:
            file.write(content[whole:] + b"\n")
        os.truncate(path, whole)
