"""What every wrapper that adds reward terms is, and shaping by a potential.

Such a wrapper adds named terms to ``info["reward_terms"]``, which go on adding up to the reward
exactly, and nothing to observations or to the rest of info: what a term is made from, gold
included, is told before the end by its value alone. Put it right on the environment, under
``TextProtocol`` and menus: it reads which tool an action calls. Such wrappers may be put on each
other.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym

from ...corpora.documents import Corpus
from ...corpora.errors import ConfigurationError
from ...corpora.tasks import Task

__all__ = [
    "Act",
    "AnswerLikelihood",
    "Potential",
    "PotentialShaping",
    "Progress",
    "ShapingState",
    "ShapingWrapper",
    "oracle_potential",
]


class Act(NamedTuple):
    """What one turn did.

    Attributes:
        tool: The tool that was run; None if none was.
        documents: Ids of the documents shown.
        observation: What the environment said.
    """

    tool: str | None
    documents: tuple[str, ...]
    observation: Any


class Progress(NamedTuple):
    """What an episode has done so far, gold included: what shaping looks at.

    Attributes:
        task: What is asked, with its gold answers, evidence and proof.
        corpus: Where the documents are.
        acts: The turns so far.
        turns_left: How many are left; None if the environment does not say.
    """

    task: Task
    corpus: Corpus
    acts: tuple[Act, ...] = ()
    turns_left: int | None = None

    @property
    def seen(self) -> frozenset[str]:
        """Ids of the documents shown so far."""
        return frozenset(document for act in self.acts for document in act.documents)

    @property
    def read(self) -> tuple[str, ...]:
        """What the environment said so far, where that is text."""
        said = (act.observation for act in self.acts)
        return tuple(text for text in said if isinstance(text, str))


Potential = Callable[[Progress], float]


class ShapingState(NamedTuple):
    """A point to come back to: that of the environment, and what the wrapper keeps."""

    inner: Any
    progress: Progress
    kept: Any


class ShapingWrapper(gym.Wrapper[Any, Any, Any, Any], ABC):
    """Adds reward terms to an environment that has a task and a corpus.

    An episode that the backend failed gets 0 from every term. ``snapshot`` and ``restore`` take
    the wrapper with them.

    Args:
        env: A search environment, or one that is shaped already.

    Raises:
        ConfigurationError: There is no search environment inside.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.Wrapper.__init__(self, env)
        if not isinstance(getattr(env.unwrapped, "corpus", None), Corpus):
            raise ConfigurationError(
                f"{type(self).__name__} shapes an environment with a task and a corpus, "
                f"got {type(env.unwrapped).__name__}"
            )
        self._progress: Progress | None = None
        self._kept: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        inner: Any = self.env.unwrapped
        self._progress = Progress(inner.task, inner.corpus, (), info.get("turns_left"))
        self._kept = self._begin(self._progress)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and add the terms."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before = self._begun()
        tool = None if info.get("error") else _tool_of(action)
        act = Act(tool, info.get("documents", ()), observation)
        after = self._progress = before._replace(
            acts=(*before.acts, act), turns_left=info.get("turns_left")
        )
        terms = dict(info.get("reward_terms", {"environment": float(reward)}))
        added, self._kept = self._value(after, info, is_over=terminated or truncated)
        for name, value in added.items():
            if name in terms:
                raise ConfigurationError(f"there is a reward term {name!r} already; rename this")
            terms[name] = value if info.get("valid", True) else 0.0
        return (
            observation,
            float(sum(terms.values())),
            terminated,
            truncated,
            {**info, "reward_terms": terms},
        )

    def snapshot(self) -> ShapingState:
        """Return the state of the episode, to come back to."""
        return ShapingState(self.env.get_wrapper_attr("snapshot")(), self._begun(), self._kept)

    def restore(self, state: ShapingState) -> None:
        """Go back to a snapshot of this wrapper."""
        self.env.get_wrapper_attr("restore")(state.inner)
        self._progress, self._kept = state.progress, state.kept

    def _begin(self, progress: Progress) -> Any:
        """Return what is kept from turn to turn, an immutable value."""
        return None

    @abstractmethod
    def _value(
        self, progress: Progress, info: Mapping[str, Any], *, is_over: bool
    ) -> tuple[dict[str, float], Any]:
        """Return the terms of a turn, and what is kept."""

    def _begun(self) -> Progress:
        if self._progress is None:
            raise gym.error.ResetNeeded("no episode was begun; call reset() first")
        return self._progress


class PotentialShaping(ShapingWrapper):
    """Adds ``weight * (discount * Phi(s') - Phi(s))``, which changes no optimal policy.

    Ng, Harada & Russell 1999, "Policy Invariance Under Reward Transformations"; with the
    likelihood of the answer as potential it is the turn reward of TIPS. Phi of an end is 0, so
    that over an episode the discounted terms add up to -Phi of its start, whatever was done.
    That holds of a truncated end too: the budget is a rule of the game, nothing follows its end,
    and a potential left standing there would pay for running out of turns in a good place. A
    learner that bootstraps beyond a truncation must add Phi of that state itself.

    Args:
        env: A search environment.
        potential: Gives Phi of an episode so far, for example ``oracle_potential``.
        discount: That of the learner; another one breaks the invariance.
        weight: What the potential is multiplied by.
        name: The name of the term.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        potential: Potential,
        *,
        discount: float = 1.0,
        weight: float = 1.0,
        name: str = "potential",
    ) -> None:
        super().__init__(env)
        if not 0 <= discount <= 1:
            raise ConfigurationError(f"discount must be in [0, 1], got {discount!r}")
        if not callable(potential):
            raise ConfigurationError(f"potential must be a function, got {potential!r:.60}")
        self.potential = potential
        self.discount = discount
        self.weight = weight
        self.name = name

    def _begin(self, progress: Progress) -> float:
        return self.weight * self.potential(progress)

    def _value(
        self, progress: Progress, info: Mapping[str, Any], *, is_over: bool
    ) -> tuple[dict[str, float], float]:
        after = 0.0 if is_over else self._begin(progress)
        return {self.name: self.discount * after - float(self._kept)}, after


def oracle_potential(progress: Progress) -> float:
    """Return minus the steps that the oracle still has to take.

    That is one for each document of the proof, or of the evidence where there is no proof, that
    was not shown yet, and one for the answer.
    """
    task = progress.task
    wanted = {step.document for step in task.proof} or set(task.evidence)
    return -float(len(wanted - progress.seen) + 1)


class AnswerLikelihood:
    """The potential of TIPS: how likely a model finds the gold answer after what was read.

    Args:
        score: Takes the question, the observations so far and the gold answers, and gives their
            log-probability, for example ``agents.llm.likelihood.LikelihoodScorer(model,
            tokenizer)``; the best or the mean of several answers is its choice.
    """

    def __init__(self, score: Callable[[str, Sequence[str], Sequence[str]], float]) -> None:
        self._score = score

    def __call__(self, progress: Progress) -> float:
        """Return the score."""
        return float(self._score(progress.task.question, progress.read, progress.task.answers))


def _tool_of(action: Any) -> str | None:
    name = action.get("name") if isinstance(action, dict) else None
    return name if isinstance(name, str) else None
