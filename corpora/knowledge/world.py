"""A knowledge world: a graph, articles that agree with it, and questions with proofs."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..retrieval import Retriever
from ..tasks import Task
from .articles import KnowledgeCorpus
from .drawing import KnowledgeTasks, draw_tasks
from .edges import Coverage
from .graph import Graph, WorldSettings, document_id, value_text
from .names import WorldSplit
from .questions import QuestionSettings
from .schema import Schema, encyclopedia, load_schema
from .terms import KINDS, Kind
from .triples import read_triples

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["KnowledgeWorld"]

Progress = Callable[[str, int, int], None]
_PROGRESS_LINES = 10_000


class KnowledgeWorld:
    """A world as in SearchGym (arXiv:2601.14615), whose articles are written by rules.

    The same arguments give the same bytes on every machine. Worlds of the two splits share no
    invented word.

    Args:
        entities: How many, at least four a type of the schema.
        world_seed: Where every draw comes from.
        split: ``"train"`` or ``"test"``.
        coverage: Which article states an edge: that of ``"both"`` ends, of the ``"subject"``, of
            the ``"object"``, or of ``"either"`` by a coin. An article names at most eight entities
            of a relation; the other end's article states the rest.
        noise: Share of entities that have a side document with outdated claims, 0 to 1.
        schema: A schema, or the path of a JSON or YAML file; None for ``encyclopedia``.

    Raises:
        ConfigurationError: An argument is outside its range, or the schema cannot be satisfied.

    Example:
        >>> world = KnowledgeWorld(entities=400, world_seed=7)
        >>> task = world.tasks(1, settings=QuestionSettings(kinds=("chain",), hops=(3, 3)))[0]
        >>> task.hops, [step.document for step in task.proof] == list(task.evidence)
        (3, True)
    """

    kinds: tuple[Kind, ...]

    def __init__(
        self,
        entities: int = 3_600,
        world_seed: int = 0,
        *,
        split: WorldSplit = "train",
        coverage: Coverage = "both",
        noise: float = 0.0,
        schema: Schema | str | os.PathLike[str] | None = None,
    ) -> None:
        self.settings = WorldSettings(entities, world_seed, split, coverage, noise)
        if schema is None:
            schema = encyclopedia()
        elif not isinstance(schema, Schema):
            schema = load_schema(schema)
        self.entities = Graph.draw(schema, self.settings)
        self.corpus = KnowledgeCorpus(self.entities, self.settings)
        self.kinds = KINDS

    @classmethod
    def from_folder(
        cls, folder: str | os.PathLike[str], *, coverage: Coverage = "both"
    ) -> "KnowledgeWorld":
        """Return the world of a real graph: see ``triples`` for the files.

        Its facts can be known by heart, so a closed-book score belongs beside every other.

        Raises:
            CorpusError: A file is missing, or a line cannot be used.
            ConfigurationError: The coverage is unknown.
        """
        world = cls.__new__(cls)
        settings = WorldSettings(1, coverage=coverage)
        world.entities, texts = read_triples(folder, coverage)
        world.settings = replace(settings, entities=len(texts))
        name = world.entities.schema.name
        world.corpus = KnowledgeCorpus(world.entities, world.settings, texts=texts, name=name)
        world.kinds = ("simple", "chain", "conjunction", "list")
        return world

    @property
    def has_prose(self) -> bool:
        """Tell whether the articles are written by rules, and not those of a real source."""
        return self.corpus.texts is None

    def __repr__(self) -> str:
        """Name the world and its size."""
        return f"<KnowledgeWorld {self.corpus.name!r}: {len(self.entities)} entities>"

    def tasks(
        self,
        count: int,
        *,
        seed: int = 0,
        settings: QuestionSettings | None = None,
        retriever: Retriever | None = None,
        top_k: int = 5,
    ) -> KnowledgeTasks:
        """Draw tasks, evenly over kinds, hops and constraints; none has a shortcut.

        Args:
            count: How many.
            seed: Where every draw comes from.
            settings: Which questions; by default every kind that the world has.
            retriever: If given, only tasks are kept whose every query brings its document.
            top_k: How many hits a search shows.

        Raises:
            ConfigurationError: The world holds fewer questions; the message says how many.
        """
        for name, value, low in (("count", count, 1), ("seed", seed, 0), ("top_k", top_k, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ConfigurationError(
                    f"{name} must be a whole number of at least {low}, got {value!r}"
                )
        return draw_tasks(
            self.corpus,
            settings or QuestionSettings(kinds=self.kinds),
            count=count,
            seed=seed,
            retriever=retriever,
            top_k=top_k,
        )

    def graph(self) -> "nx.MultiDiGraph[str]":
        """Return the graph for networkx; see ``Graph.to_networkx``."""
        return self.entities.to_networkx()

    def facts(self) -> Iterator[dict[str, Any]]:
        """Give what is true of each entity, and then what each side document wrongly claims.

        An entity has ``id, name, type, url``, its attributes as text, and under each relation's
        name the ids of its objects. A side document has ``id, about, is_outdated`` and ``claims``.
        """
        graph = self.entities
        for entity in range(len(graph)):
            kind = graph.type_of(entity).name
            values = {a.name: graph.value(entity, a) for a in graph.schema.attributes_of(kind)}
            objects = {
                name: [*map(document_id, graph.others(entity, name, is_inverse=False))]
                for name in graph.relations_from(kind)
            }
            yield {
                "id": document_id(entity),
                "name": graph.name(entity),
                "type": kind,
                "url": self.corpus.url(entity),
                "attributes": values,
                "relations": {name: ids for name, ids in objects.items() if ids},
            }
        for entity in self.corpus.outdated:
            yield {
                "id": f"n{entity}",
                "about": document_id(entity),
                "is_outdated": True,
                "claims": self._claims(entity),
            }

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
            tasks: What to write as tasks; ``KnowledgeTasks`` are written with their difficulty.
            progress: Called now and then with a file's name, the lines written and all its lines.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        articles = (_json(asdict(document)) for document in self.corpus)
        _write_lines(target / "corpus.jsonl", articles, len(self.corpus), progress)
        lines = (_json(_described(tasks, task)) for task in tasks)
        _write_lines(target / "tasks.jsonl", lines, len(tasks), progress)
        settings = {**asdict(self.settings), "schema": self.entities.schema.name}
        head = f'{{"settings": {_json(settings)}, "facts": ['
        last = len(self.corpus) - 1
        entries = (_json(f) + "," * (place < last) for place, f in enumerate(self.facts()))
        whole = chain([head], entries, ["]}"])
        _write_lines(target / "facts.json", whole, len(self.corpus) + 2, progress)

    def _claims(self, entity: int) -> list[dict[str, str]]:
        claims = []
        for claim in self.corpus.claims(entity):
            if claim.relation is not None:
                claims.append({"relation": claim.relation.name, "object": document_id(claim.other)})
            elif claim.attribute is not None:
                value = value_text(claim.attribute, claim.number)
                claims.append({"attribute": claim.attribute.name, "value": value})
        return claims


def _described(tasks: Sequence[Task], task: Task) -> dict[str, Any]:
    if not isinstance(tasks, KnowledgeTasks):
        return asdict(task)
    question = tasks.question(task).to_dict()
    return {**asdict(task), "difficulty": asdict(tasks.difficulty(task)), "form": question}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_lines(path: Path, lines: Iterable[str], total: int, progress: Progress | None) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines, start=1):
            file.write(line + "\n")
            if progress is not None and (number % _PROGRESS_LINES == 0 or number == total):
                progress(path.name, number, total)
