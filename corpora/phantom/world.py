"""A phantom world: invented people, their articles, and questions with proofs."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ..certificates import certify, find_leaks
from ..errors import ConfigurationError
from ..retrieval import Retriever
from ..tasks import Task, TaskSet
from .articles import ArticleStyle, PhantomCorpus, document_id, every_relatives
from .grammar import Question, QuestionSettings
from .names import WorldSplit
from .people import People, WorldSettings
from .prolog import prolog_facts, prolog_rules
from .sampling import draw_questions
from .vocabulary import ATTRIBUTES

__all__ = ["PhantomWorld"]

Progress = Callable[[str, int, int], None]


class PhantomWorld:
    """A universe of invented people, as in PhantomWiki (Gong et al. 2025, arXiv:2502.20377).

    The same arguments give the same bytes on every machine. Worlds of the two splits share no
    given name, no surname and no full name.

    Args:
        people: How many people.
        world_seed: Where every draw comes from.
        split: ``"train"`` or ``"test"``.
        style: How articles are written: ``"wiki"`` or ``"prose"``.
        friends: How many friends a person has on average.
        family: The most people in a family, the most generations it spans, and the most children
            of a couple.

    Raises:
        ConfigurationError: An argument is outside its range.

    Example:
        >>> world = PhantomWorld(people=50, world_seed=7)
        >>> task = world.tasks(1, settings=QuestionSettings(hops=(2, 2)))[0]
        >>> [step.document for step in task.proof] == list(task.evidence)
        True
    """

    def __init__(
        self,
        people: int,
        world_seed: int = 0,
        *,
        split: WorldSplit = "train",
        style: ArticleStyle = "wiki",
        friends: float = 3.0,
        family: tuple[int, int, int] = (25, 5, 5),
    ) -> None:
        if not isinstance(family, tuple) or len(family) != 3:
            raise ConfigurationError(
                f"family must be (most people, most generations, most children), got {family!r}"
            )
        self.settings = WorldSettings(people, world_seed, split, friends, *family)
        self.people = People.draw(self.settings)
        self.corpus = PhantomCorpus(self.people, style)

    def __repr__(self) -> str:
        """Name the world and its size."""
        return f"<PhantomWorld {self.corpus.name!r}: {len(self.people)} people>"

    def tasks(
        self,
        count: int,
        *,
        seed: int = 0,
        settings: QuestionSettings | None = None,
        retriever: Retriever | None = None,
        top_k: int = 3,
    ) -> TaskSet:
        """Draw tasks, evenly over kinds, hops and constraints.

        Args:
            count: How many.
            seed: Where every draw comes from. The first questions of a cell (a kind, a number
                of hops and of constraints) depend on the seed alone and not on what else is asked.
            settings: Which questions; by default chains and attributes of 1 to 6 hops.
            retriever: If given, only tasks are kept whose proof it can play, and of those of two
                hops and more only such as do not leak.
            top_k: How many hits a search shows.

        Raises:
            ConfigurationError: The world holds fewer questions; the message says how many.
        """
        drawn = self.questions(
            count, seed=seed, settings=settings, retriever=retriever, top_k=top_k
        )
        return TaskSet((task for _, task in drawn), name=f"{self.corpus.name}-tasks")

    def questions(
        self,
        count: int,
        *,
        seed: int = 0,
        settings: QuestionSettings | None = None,
        retriever: Retriever | None = None,
        top_k: int = 3,
    ) -> list[tuple[Question, Task]]:
        """Draw the same tasks as ``tasks``, each with the question it was made from."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigurationError(f"count must be a whole number of at least 1, got {count!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ConfigurationError(f"seed must be a whole number of at least 0, got {seed!r}")
        accept = None if retriever is None else _acceptance(retriever, top_k)
        return draw_questions(
            self.people, settings or QuestionSettings(), count=count, seed=seed, accept=accept
        )

    def facts(self) -> Iterator[dict[str, Any]]:
        """Give what each person's article states, one person after the other."""
        for person, relatives in enumerate(every_relatives(self.people)):
            yield {
                "id": document_id(person),
                "name": self.people.name(person),
                "gender": "female" if self.people.is_female(person) else "male",
                **{name: self.people.value(person, name) for name in ATTRIBUTES},
                **{relation: [*map(document_id, others)] for relation, others in relatives},
            }

    def to_prolog(self) -> str:
        """Return facts and rules as a Prolog program, in PhantomWiki's vocabulary."""
        return "\n".join(sorted(prolog_rules()) + list(prolog_facts(self.people))) + "\n"

    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        tasks: Sequence[Task] = (),
        progress: Progress | None = None,
    ) -> None:
        """Write ``corpus.jsonl``, ``tasks.jsonl`` and ``facts.json``, a line at a time.

        Args:
            folder: Where to; made if it is missing.
            tasks: What to write as tasks.
            progress: Called now and then with a file's name, the lines written and all its lines.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        articles = map(asdict, self.corpus)
        _write_lines(target / "corpus.jsonl", map(_json, articles), len(self.corpus), progress)
        lines = (_json(asdict(task)) for task in tasks)
        _write_lines(target / "tasks.jsonl", lines, len(tasks), progress)
        head = f'{{"settings": {_json(asdict(self.settings))}, "people": ['
        last = len(self.people) - 1
        people = (_json(f) + "," * (place < last) for place, f in enumerate(self.facts()))
        whole = chain([head], people, ["]}"])
        _write_lines(target / "facts.json", whole, len(self.people) + 2, progress)


def _acceptance(retriever: Retriever, top_k: int) -> Callable[[Sequence[Task]], list[bool]]:
    def accept(tasks: Sequence[Task]) -> list[bool]:
        proved = certify(tasks, retriever, top_k)
        leaks = find_leaks(tasks, retriever, top_k)
        return [
            is_proved and not (is_leak and task.hops >= 2)
            for task, is_proved, is_leak in zip(tasks, proved, leaks, strict=True)
        ]

    return accept


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_lines(path: Path, lines: Iterable[str], total: int, progress: Progress | None) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines, start=1):
            file.write(line + "\n")
            if progress is not None and (number % 10_000 == 0 or number == total):
                progress(path.name, number, total)
