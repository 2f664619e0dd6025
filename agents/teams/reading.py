"""A team that reads by rules: it sees no gold, and is as good as its rules."""

from typing import Any

from ...envs.summaries import summarise
from ...envs.team import RolePolicy
from ..reading import Passage, choose_answer, names, parse_passages

__all__ = ["ReadingAnswerer", "ReadingLeader", "ReadingSearcher"]


class ReadingLeader(RolePolicy):
    """Lets one searcher search for the question and the others for the names in it, once."""

    role = "leader"

    def reset(self, seed: int) -> None:
        """Forget the question."""
        self._question = ""

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Assign in the first turn, then hand over, or answer where there is no answerer."""
        if "assign" in info["tools"] and not self._question:
            self._question = observation
            asked = list(dict.fromkeys([observation, *names(observation)]))
            shares = zip(self.env.rules.searcher_names, asked, strict=False)
            return {"name": "assign", "arguments": dict(shares)}
        if "hand_over" in info["tools"]:
            return {"name": "hand_over", "arguments": {}}
        return _read_answer(self._question, observation)


class ReadingSearcher(RolePolicy):
    """Searches once for its sub-question, then reports the sentences that fit it best."""

    role = "searcher"

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Search in the first turn, report in the second."""
        if info["turns"] == 0:
            self._question = observation
            return self.env.source.search_call(observation)
        text = summarise(self._question, observation, self.env.rules.reports)
        return {"name": "report", "arguments": {"text": text}}


class ReadingAnswerer(RolePolicy):
    """Takes an answer from the reports as retrieve-then-read takes one from passages."""

    role = "answerer"

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Answer."""
        question, _, reports = observation.partition("\n\n")
        return _read_answer(question, reports)


def _read_answer(question: str, reports: str) -> Any:
    passages = [
        Passage(part.id, "", part.text)
        for text in reports.split("\n\n")
        for part in parse_passages(text)
    ]
    return {"name": "answer", "arguments": {"text": choose_answer(question, passages)}}
