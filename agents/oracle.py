"""The oracle: plays a task's proof through the tools, and knows the gold answer."""

from collections import deque
from typing import Any, cast

import gymnasium as gym

from ..envs.query_refinement import QueryRefinementEnv
from ..envs.wrappers.menu import find_menu
from .base import Agent
from .menus import choose_by_gold
from .refinement import RefinementOracle

__all__ = ["OracleAgent"]


class OracleAgent(Agent):
    """Shows how good an agent could be: it reads the task's proof, evidence and gold answers.

    A task with a proof is played as the proof says: search, open what the search shows, and
    give the gold answer once all evidence was seen. Where a search does not show the document,
    the proof has failed, and the answer is "unknown". Of a task without a proof, the titles of
    the evidence are searched for, and a document that is not shown is read by its id.

    Of a menu it takes what leads to the gold answer: the best return that the menu allows. A
    query is refined as ``RefinementOracle`` does it.
    """

    name = "oracle"
    sees_gold = True
    plays_menus = True

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._menu = find_menu(env)
        is_refined = isinstance(env.unwrapped, QueryRefinementEnv)
        self._refiner = RefinementOracle(env) if is_refined else None

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Plan the searches."""
        if self._refiner is not None:
            self._refiner.reset(observation, info)
            return
        self._search_env = cast(Any, self.env.unwrapped)
        self._task = self._search_env.task
        steps = [(step.query, step.document) for step in self._task.proof] or [
            (self._search_env.corpus[document].title, document) for document in self._task.evidence
        ]
        self._steps = deque(steps)
        self._shown: set[str] = set()

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the next call of the plan."""
        if self._refiner is not None:
            return self._refiner.act(observation, info)
        if self._menu is not None:
            return choose_by_gold(self._menu)
        self._shown.update(info["documents"])
        while self._steps and self._steps[0][1] in self._shown:
            self._steps.popleft()
        if not self._steps:
            answers = self._task.answers
            return self._search_env.answer_call(
                ", ".join(answers) if self._task.is_answer_set else answers[0]
            )
        if info["turns_left"] == 1:
            return self._search_env.answer_call(
                "unknown" if self._task.proof else self._task.answers[0]
            )
        query, document = self._steps[0]
        if query:
            self._steps[0] = ("", document)  # what the search shows is opened in the next turn
            return self._search_env.finding_call(query, document)
        self._steps.popleft()
        if self._task.proof and not self._is_found(document, observation):
            return self._answer("unknown")
        return self._search_env.reading_call(document)

    def _answer(self, text: str) -> Any:
        return self._search_env.answer_call(text)

    def _is_found(self, document_id: str, observation: str) -> bool:
        url = self._search_env.corpus[document_id].url
        return f"[{document_id}]" in observation or (url is not None and url in observation)
