"""The oracle: plays a task's proof through the tools, and knows the gold answer."""

from collections import deque
from typing import Any

from .base import Agent

__all__ = ["OracleAgent"]


class OracleAgent(Agent):
    """Shows how good an agent could be: it reads the task's proof, evidence and gold answers.

    It searches as the proof says (for the evidence's titles, where a task has no proof), reads
    a document that the search did not show, and gives the gold answer while a turn is left.
    """

    name = "oracle"
    sees_gold = True

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Plan the searches."""
        env: Any = self.env.unwrapped
        self._task = env.task
        steps = [(step.query, step.document) for step in self._task.proof] or [
            (env.corpus[document].title, document) for document in self._task.evidence
        ]
        self._steps = deque(steps)
        self._shown: set[str] = set()

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the next call of the plan."""
        self._shown.update(info["documents"])
        while self._steps and self._steps[0][1] in self._shown:
            self._steps.popleft()
        if not self._steps or info["turns_left"] == 1:
            answers = self._task.answers
            text = ", ".join(answers) if self._task.is_answer_set else answers[0]
            return {"name": "answer", "arguments": {"text": text}}
        query, document = self._steps[0]
        if query:
            self._steps[0] = ("", document)  # if the search does not show it, read it
            return {"name": "search", "arguments": {"query": query}}
        self._steps.popleft()
        return {"name": "read", "arguments": {"document_id": document}}
