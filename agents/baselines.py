"""Baselines: what chance, memory, one search and a few searches are worth."""

import copy
import hashlib
from typing import Any

import gymnasium as gym

from .base import Agent
from .reading import Passage, choose_answer, content_words, names, parse_passages

__all__ = ["ClosedBookAgent", "IterativeAgent", "RandomAgent", "RetrieveThenReadAgent"]


class RandomAgent(Agent):
    """Makes random, well-made calls, or legal choices; the draw depends on the task alone."""

    name = "random"
    plays_menus = True

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._actions = copy.deepcopy(env.action_space)

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Seed the draw by the task."""
        digest = hashlib.sha256(info["task_id"].encode()).digest()
        self._actions.seed(int.from_bytes(digest[:4], "big"))

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return a random call."""
        return self._actions.sample(info.get("action_mask"))


class ClosedBookAgent(Agent):
    """Never searches and answers from the question alone: the floor that leakage would lift."""

    name = "closed-book"

    def reset(self, observation: str, info: dict[str, Any]) -> None:
        """Read the question."""
        self._question = observation

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Answer."""
        return _answer(choose_answer(self._question, ()))


class RetrieveThenReadAgent(Agent):
    """Searches once for the question, then takes an answer from the passages by rules."""

    name = "retrieve-then-read"

    def reset(self, observation: str, info: dict[str, Any]) -> None:
        """Read the question."""
        self._question = observation

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Search in the first turn, answer in the second."""
        if info["turn"] == 0:
            return self._search(self._question)
        return _answer(choose_answer(self._question, parse_passages(observation)))


class IterativeAgent(Agent):
    """Searches for the question, then for names it found, then answers by the same rules.

    Each later query is a name from the passages (their titles first) that the question does
    not hold, the name whose passage shares most words with the question.
    """

    name = "iterative"
    max_searches = 5

    def reset(self, observation: str, info: dict[str, Any]) -> None:
        """Read the question."""
        self._question = observation
        self._passages: dict[str, Passage] = {}
        self._asked: set[str] = set()

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Search again while there is a new name to ask for, then answer."""
        if info["turn"] == 0:
            return self._search(self._question)
        for passage in parse_passages(observation):
            self._passages.setdefault(passage.id, passage)
        may_search = info["turn"] < self.max_searches and info["turns_left"] > 1
        query = self._next_query() if may_search else None
        if query is None:
            return _answer(choose_answer(self._question, tuple(self._passages.values())))
        self._asked.add(query)
        return self._search(query)

    def _next_query(self) -> str | None:
        """Return the most promising name that was not asked for yet, or None."""
        asked = set(content_words(self._question))
        in_question = [name for name in names(self._question) if len(name) > 3]
        best: tuple[float, str] | None = None
        for name in in_question:
            if not self._is_known(name) and name not in self._asked:
                return name
        for passage in self._passages.values():
            overlap = len(asked & set(content_words(f"{passage.title} {passage.text}")))
            for name in names(passage.text)[:12]:
                if name in self._asked or self._is_known(name) or len(name) < 4:
                    continue
                score = overlap + 0.5 * (" " in name)
                if best is None or score > best[0]:
                    best = (score, name)
        return None if best is None else best[1]

    def _is_known(self, name: str) -> bool:
        return any(name.lower() in passage.title.lower() for passage in self._passages.values())


def _answer(text: str) -> dict[str, Any]:
    return {"name": "answer", "arguments": {"text": text}}
