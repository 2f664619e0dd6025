"""Players of query refinement: a teacher that follows relevance feedback, and the optimum."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym

from ..corpora.errors import ConfigurationError
from ..corpora.retrieval import Clause, FieldedQuery
from ..envs.query_episode import QuerySnapshot
from ..envs.query_grammar import STOP
from ..envs.query_refinement import QueryRefinementEnv
from ..envs.scoring import ndcg
from .base import Agent

__all__ = ["RefinementOracle", "RocchioTeacher"]

_CLOSE = 1e-12


class _Refiner(Agent):
    """Plays clauses: what it decides on, it plays production by production."""

    sees_gold = True
    plays_menus = True

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        inner = env.unwrapped
        if not isinstance(inner, QueryRefinementEnv):
            raise ConfigurationError(
                f"{self.name} plays query refinement, got {type(inner).__name__}; "
                "for example seekgym/QueryRefinement-v0"
            )
        self._game = inner
        self._left: list[int] = []

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the next production of the clause at work, or begin another."""
        if not self._left:
            self._left = list(self._next())
        return self._left.pop(0)

    def _next(self) -> tuple[int, ...]:
        """Return the productions of the next clause, or that of stopping."""
        raise NotImplementedError

    def _rankings(self, clauses: Mapping[tuple[int, ...], Clause]) -> list[tuple[str, ...]]:
        """Return the results that each clause would bring."""
        query = self._game.query
        queries = [replace(query, clauses=(*query.clauses, clause)) for clause in clauses.values()]
        found = self._game.retriever.rank(queries, self._game.k)
        return [tuple(hit.document_id for hit in hits) for hits in found]


class RocchioTeacher(_Refiner):
    """Adds the terms that bring the results nearest to those for question and gold answer.

    The cold start of "Boosting Search Engines with Interactive Agents" (Adolphs et al. 2022): a
    term's weight is its mean tf-idf in the goal's documents minus that in the results (Rocchio
    1971), the ``tries`` heaviest clauses are tried, and the one whose results are nearest to the
    goal, by nDCG, is taken if it is nearer than before. It sees the gold answer, never the
    evidence.
    """

    name = "rocchio"
    tries = 24

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Search for the question with the gold answer."""
        self._left = []
        task, game = self._game.task, self._game
        goal = FieldedQuery(f"{task.question} {' '.join(task.answers)}")
        self._goal = tuple(hit.document_id for hit in game.retriever.rank([goal], game.k)[0])

    def _next(self) -> tuple[int, ...]:
        is_first = not self._game.query.clauses
        offered = self._game.clauses()
        weights = self._weights()
        heaviest = sorted(offered, key=lambda path: (-self._gain(offered[path], weights), path))
        tried = {path: offered[path] for path in heaviest[: self.tries]}
        near = [self._nearness(ranking) for ranking in self._rankings(tried)]
        best = max(near, default=-1.0)
        least = -1.0 if is_first else self._nearness(self._game.results) + _CLOSE
        return next(
            (path for path, value in zip(tried, near, strict=True) if value == best > least),
            (STOP,),
        )

    def _nearness(self, ranking: tuple[str, ...]) -> float:
        return ndcg(ranking, self._goal, self._game.k) if ranking and self._goal else -1.0

    def _gain(self, clause: Clause, weights: Mapping[str, float]) -> float:
        weight = weights.get(clause.term, 0.0)
        return -weight if clause.sign == "forbid" else weight

    def _weights(self) -> dict[str, float]:
        weights: dict[str, float] = {}
        for documents, sign in ((self._goal, 1), (self._game.results, -1)):
            for document in documents:
                for term, value in self._game.term_weights(document).items():
                    weights[term] = weights.get(term, 0.0) + sign * value / len(documents)
        return weights


class _Node(NamedTuple):
    value: float  # the sum of rewards so far
    path: tuple[int, ...]
    state: QuerySnapshot


class RefinementOracle(_Refiner):
    """Finds the best clauses by beam search over the grammar, knowing the evidence.

    Every clause of a node is tried, and the ``beam`` best nodes with different results are gone
    on from. That is a lower bound of the optimum; nothing exceeds 1 minus the first nDCG. The
    shortest of the best is played.
    """

    name = "refinement-oracle"
    beam = 4

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Search; the environment is as it was afterwards."""
        game, start = self._game, self._game.snapshot()
        nodes, best = [_Node(0.0, (), start)], _Node(-1.0, (), start)
        for _ in range(game.requests - 1):
            nodes = self._grow(nodes, game.task.evidence)
            for node in nodes:
                best = node if node.value > best.value + _CLOSE else best
            if not nodes or best.value >= 1 - start.episode.first_ndcg - _CLOSE:
                break
        game.restore(start)
        self._left = [*best.path, STOP]

    def _next(self) -> tuple[int, ...]:
        return (STOP,)

    def _grow(self, nodes: list[_Node], evidence: tuple[str, ...]) -> list[_Node]:
        """Return the best nodes with one clause more."""
        grown: list[tuple[float, int, _Node, tuple[int, ...], tuple[str, ...]]] = []
        for node in nodes:
            self._game.restore(node.state)
            clauses = self._game.clauses()
            for path, ranking in zip(clauses, self._rankings(clauses), strict=True):
                if ranking:
                    value = ndcg(ranking, evidence, self._game.k)
                    grown.append((-value, len(grown), node, path, ranking))
        grown.sort(key=lambda child: child[:2])
        kept: list[_Node] = []
        known = set[frozenset[str]]()
        for _, _, node, path, ranking in grown:
            if len(kept) < self.beam and frozenset(ranking) not in known:
                known.add(frozenset(ranking))
                kept.append(self._played(node, path))
        return kept

    def _played(self, node: _Node, path: tuple[int, ...]) -> _Node:
        self._game.restore(node.state)
        value = node.value + sum(self._game.step(place)[1] for place in path)
        return _Node(value, node.path + path, self._game.snapshot())
