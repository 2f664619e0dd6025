"""A wrapper that makes an answer that was searched for worth less."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from ...corpora.errors import ConfigurationError, raise_unknown
from .shaping import Progress, ShapingWrapper

__all__ = ["SearchDiscount"]

_METRICS = ("exact_match", "f1", "cover_exact_match")


class SearchDiscount(ShapingWrapper, RecordConstructorArgs):
    """Takes a share of a right answer's score back if the episode searched for it.

    ``search_discount`` is, at the end, ``-share`` times the score: an outcome reward with a search
    penalty, which the abstract of MMSearch-R1 (arXiv:2506.20670) names. With ``known``, the tasks
    that the policy answers by heart, it is all of the score on those and nothing on others, after
    the aim of SEM (arXiv:2505.07903): search only where it is needed. Form and shares are ours.
    For a cost of each search see ``rewards.SearchCost``.

    Args:
        env: A search environment.
        share: Which share is taken, 0 to 1.
        known: Ids of the tasks that need no search; every task gets ``share`` if left out.
        metric: The score: ``exact_match``, ``f1`` or ``cover_exact_match``.
        tools: Which tools search.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        share: float = 0.1,
        known: Sequence[str] | None = None,
        metric: str = "exact_match",
        tools: Sequence[str] = ("search",),
    ) -> None:
        RecordConstructorArgs.__init__(self, share=share, known=known, metric=metric, tools=tools)
        ShapingWrapper.__init__(self, env)
        if not 0 <= share <= 1:
            raise ConfigurationError(f"share must be in [0, 1], got {share!r}")
        if metric not in _METRICS:
            raise_unknown("metric", metric, _METRICS)
        self._share, self._metric, self._tools = share, metric, frozenset(tools)
        self._known = None if known is None else frozenset(known)

    def _value(
        self, progress: Progress, info: Mapping[str, Any], *, is_over: bool
    ) -> tuple[dict[str, float], None]:
        share = self._share
        if self._known is not None:
            share = float(progress.task.id in self._known)
        is_searched = any(act.tool in self._tools for act in progress.acts)
        score = info.get(self._metric) if is_over and is_searched else None
        return {"search_discount": -share * float(score or 0.0)}, None
