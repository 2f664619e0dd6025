"""A wrapper that pays reading, searching and efficiency beside the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError
from .shaping import Progress, ShapingWrapper

__all__ = ["GraspMix"]


class GraspMix(ShapingWrapper, RecordConstructorArgs):
    """Adds the aids of GRASP (arXiv:2607.10463) to the reward of the answer.

    ``R = R_A + 0.7 R_R + 0.15 R_S + 0.15 R_E``, paid at the end. R_A, the token F1, is the
    environment's own: make it with ``rewards="f1"``. ``reading`` (R_R) is the F1 of the documents
    that were opened against the evidence; ``searching`` (R_S) is 1 if each search tool showed
    some evidence; ``efficiency`` (R_E) is, for a right answer only, the share of the turns after
    the first that is left (the paper's own form of it was not at hand).

    Args:
        env: A search environment.
        weights: Those of reading, searching and efficiency.
        search_tools: Which tools search; GRASP has a dense and a lexical one. A search that shows
            snippets and no documents, as in KnowledgeGraph, earns nothing.
        read_tools: Which tools open documents.

    Raises:
        ConfigurationError: No tool searches.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        weights: tuple[float, float, float] = (0.7, 0.15, 0.15),
        search_tools: Sequence[str] = ("search",),
        read_tools: Sequence[str] = ("read", "access", "open"),
    ) -> None:
        RecordConstructorArgs.__init__(
            self, weights=weights, search_tools=search_tools, read_tools=read_tools
        )
        ShapingWrapper.__init__(self, env)
        if not search_tools:
            raise ConfigurationError("search_tools must name at least one tool, got none")
        self._weights = weights
        self._search_tools, self._read_tools = tuple(search_tools), tuple(read_tools)

    def _value(
        self, progress: Progress, info: Mapping[str, Any], *, is_over: bool
    ) -> tuple[dict[str, float], None]:
        values = self._scores(progress, info) if is_over else (0.0, 0.0, 0.0)
        names = ("reading", "searching", "efficiency")
        weighted = [weight * value for weight, value in zip(self._weights, values, strict=True)]
        return dict(zip(names, weighted, strict=True)), None

    def _scores(self, progress: Progress, info: Mapping[str, Any]) -> tuple[float, float, float]:
        evidence = set(progress.task.evidence)
        shown: dict[str | None, set[str]] = {}
        for act in progress.acts:
            shown.setdefault(act.tool, set()).update(act.documents)
        opened = set[str]().union(*(shown.get(tool, set()) for tool in self._read_tools))
        both = len(opened) + len(evidence)
        reading = 2 * len(opened & evidence) / both if both else 0.0
        searching = all(shown.get(tool, set()) & evidence for tool in self._search_tools)
        later = len(progress.acts) - 1 + (progress.turns_left or 0)
        is_right = info.get("exact_match") == 1
        efficiency = (progress.turns_left or 0) / later if is_right and later else 0.0
        return reading, float(searching), efficiency
