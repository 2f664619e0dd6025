"""The scripted team: plays the proof, with the work divided along its independent branches."""

from typing import Any

from ...corpora.tasks import ProofStep
from ...envs.team import RolePolicy, TeamParallelEnv
from ...envs.tools import Search
from .plan import Capacity, dependencies, make_plan

__all__ = ["ScriptedAnswerer", "ScriptedLeader", "ScriptedSearcher"]

_BETWEEN = " ; "


class ScriptedLeader(RolePolicy):
    """Assigns steps of the proof as sub-questions, until reports hold all facts."""

    role = "leader"
    sees_gold = True

    def reset(self, seed: int) -> None:
        """Forget what was reported."""
        self._read = ""

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Assign what is missing, or hand over."""
        self._read += f"\n{observation}"
        task = self.env.task
        steps = task.proof or _steps_of_evidence(self.env)
        done = frozenset(i for i, step in enumerate(steps) if _key(step) in self._read)
        if len(done) == len(steps) or "assign" not in info["tools"]:
            if "hand_over" in self.env.game.tools["leader"]:
                return {"name": "hand_over", "arguments": {}}
            return _answer(self.env, self._read)
        needs = dependencies(task) if task.proof else [frozenset[int]()] * len(steps)
        shares = make_plan(needs, done, _capacity(self.env)).rounds[0]
        asked = {
            f"searcher_{number}": _BETWEEN.join(_ask(steps[step]) for step in share)
            for number, share in enumerate(shares)
        }
        return {"name": "assign", "arguments": asked}


class ScriptedSearcher(RolePolicy):
    """Searches what it is assigned, opens what a step needs, and reports the facts it saw."""

    role = "searcher"
    sees_gold = True

    def reset(self, seed: int) -> None:
        """Forget the last assignment."""
        self._todo: list[ProofStep] = []
        self._searched = False

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Return the next call of its share of the proof."""
        if info["turns"] == 0:
            steps = self.env.task.proof or _steps_of_evidence(self.env)
            by_ask = {_ask(step): step for step in steps}
            asks = observation.split(_BETWEEN)
            self._todo = [by_ask[ask] for ask in asks if ask in by_ask]
            self._facts: list[str] = []
            self._searched = False
        while self._todo and self._todo[0].document in info["documents"]:
            self._facts.append(_key(self._todo.pop(0)))
            self._searched = False
        if self._searched and not self._is_found(self._todo[0].document, observation):
            self._todo.pop(0)  # the proof has failed here, and the leader will see it
            self._searched = False
        if not self._todo or len(info["tools"]) == 1:
            return {"name": "report", "arguments": {"text": " ".join(self._facts)}}
        step = self._todo[0]
        if not self._searched and step.query:
            self._searched = True
            return self.env.source.search_call(step.query)
        self._searched = False
        return self.env.source.reading_call(step.document)

    def _is_found(self, document: str, observation: str) -> bool:
        url = self.env.source.corpus[document].url
        shown = f"[{document}]" in observation or (url is not None and url in observation)
        return shown or not self.env.task.proof


class ScriptedAnswerer(RolePolicy):
    """Gives the gold answer if the reports hold every fact of the proof, else "unknown"."""

    role = "answerer"
    sees_gold = True

    def act(self, observation: str, info: dict[str, Any]) -> Any:
        """Answer."""
        return _answer(self.env, observation)


def _answer(env: TeamParallelEnv, read: str) -> Any:
    task = env.task
    steps = task.proof or _steps_of_evidence(env)
    text = "unknown"
    if all(_key(step) in read for step in steps):
        text = ", ".join(task.answers) if task.is_answer_set else task.answers[0]
    return {"name": "answer", "arguments": {"text": text}}


def _ask(step: ProofStep) -> str:
    """Return the sub-question of a step: what to search for, and which document to open."""
    return " ".join(f"{step.query} [{step.document}]".split())


def _key(step: ProofStep) -> str:
    """Return what a report of a step says: its fact, or that the document was seen."""
    return step.fact or f"The document {step.document} was seen."


def _steps_of_evidence(env: TeamParallelEnv) -> tuple[ProofStep, ...]:
    """Return steps for a task without a proof: each evidence document by its title."""
    corpus = env.source.corpus
    return tuple(ProofStep(corpus[place].title, place) for place in env.task.evidence)


def _capacity(env: TeamParallelEnv) -> Capacity:
    """Return what the team can do in a round; a search that shows only snippets takes two calls."""
    shows_documents = isinstance(env.source.tools.get("search"), Search) and env.task.proof
    calls = 1 if shows_documents else 2
    return Capacity(env.rules.searchers, max(1, (env.rules.search_turns - 1) // calls), calls)
