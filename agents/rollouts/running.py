"""An episode while a policy plays it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from ...corpora.errors import ConfigurationError
from ...envs.actions import ToolCall, ToolSignature
from ...envs.base import SearchEnv
from ...envs.episode import Snapshot
from ...envs.game import Game
from ...envs.protocols import Protocol
from ...envs.wrappers import TextProtocol
from .budget import Budget, Cost, cost_of
from .play import outcome_of
from .trajectory import Segment, Trajectory, Turn

__all__ = ["EpisodePlan", "Reply", "RunningEpisode", "Start"]

_LOST = {"failure": "policy", "valid": False}


@dataclass(frozen=True, slots=True)
class Start:
    """Where an episode goes on from, if not from a reset.

    Attributes:
        trajectory: What was played before.
        turns: How many of its first turns are kept.
        snapshot: The state after those turns; they are played again without one.
    """

    trajectory: Trajectory
    turns: int
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class EpisodePlan:
    """What is to be played: all that decides an episode, apart from the policy.

    Attributes:
        order: Its place in the rollout.
        id: Tells it from the others of the rollout.
        group: What trajectories that begin alike share.
        seed: The seed of the reset.
        options: The options of the reset.
        entropy: Seeds the policy's own draws.
        start: Where it goes on from; a reset if None.
        budget: What it may use until it is put aside, turns taken over not counted.
    """

    order: int
    id: str
    group: str
    seed: int | None
    entropy: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    start: Start | None = None
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a policy wrote in one turn.

    Attributes:
        action: A text for a text protocol, or a tool call.
        finish: ``length`` if the policy was stopped before its end: then nothing is run.
        span: Where it stands in the tokens: segment, first token, token after the last.
        tokens: How many tokens it took, where no span says so.
    """

    action: str | ToolCall | Mapping[str, Any]
    finish: Literal["stop", "length"] = "stop"
    span: tuple[int, int, int] | None = None
    tokens: int = 0


class RunningEpisode:
    """One episode, from its first observation to its trajectory.

    A policy reads ``system_prompt``, ``question`` and ``turns``, and calls ``send`` until it
    gives None; then ``finish`` gives the trajectory, suspended if the episode's budget was spent
    before its end. ``turns`` is not empty at the start if the episode goes on from another one's
    turns.

    Attributes:
        plan: What is played.
        env: The environment, with its text protocol around it if there is one.
        system_prompt: The protocol's instructions; empty for a policy that calls tools.
        question: The first observation, as text.
        turns: The turns so far.
        observation: The latest observation as the environment gave it, numbers where it has them.
        info: The latest ``info``.
        is_over: Whether the episode has ended.
        snapshots: The state before each turn, if they are kept.

    Args:
        env: The environment, already given to this episode alone.
        plan: What is to be played.
        agent: Who plays.
        keeps_snapshots: Whether to keep the state before each turn, to branch off from.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        plan: EpisodePlan,
        *,
        agent: str,
        keeps_snapshots: bool = False,
    ) -> None:
        self.plan = plan
        self.env = env
        self._agent = agent
        self._keeps_snapshots = keeps_snapshots
        self.snapshots: list[Snapshot] = []
        self.turns: list[Turn] = []
        self.is_over = False
        self._cost = Cost()
        self.observation, self.info = env.reset(seed=plan.seed, options=dict(plan.options))
        self.question = self.info.get("text", self.observation)
        self._first = self.info
        self.system_prompt: str = self.info.get("system_prompt", "")
        if plan.start is not None:
            self._go_on_from(plan.start)

    @property
    def may_go_on(self) -> bool:
        """Whether a turn may follow: the episode is not over, and its budget is not spent."""
        budget = self.plan.budget
        return not self.is_over and not (budget is not None and budget.is_spent(self._cost))

    @property
    def game(self) -> Game[Any, Any]:
        """The environment without its wrappers, whatever its actions are."""
        inner = self.env.unwrapped
        if not isinstance(inner, Game):
            raise TypeError(f"a Game is needed, got {type(inner).__name__}")
        return inner

    @property
    def search_env(self) -> SearchEnv:
        """The environment without its wrappers, if it is played by tool calls."""
        inner = self.env.unwrapped
        if not isinstance(inner, SearchEnv):
            raise TypeError(f"a SearchEnv is needed, got {type(inner).__name__}")
        return inner

    @property
    def tools(self) -> Sequence[ToolSignature]:
        """What may be called."""
        return [tool.signature for tool in self.search_env.tools.values()]

    @property
    def protocol(self) -> Protocol | None:
        """The text protocol, or None if actions are tool calls."""
        return self.env.protocol if isinstance(self.env, TextProtocol) else None

    @property
    def generator(self) -> np.random.Generator:
        """A new generator for the policy's draws in this episode; the same one each time."""
        return np.random.default_rng(np.random.SeedSequence(self.plan.entropy))

    @property
    def shared_segments(self) -> tuple[Segment, ...]:
        """The tokens of the turns taken over, up to where the next reply begins."""
        start = self.plan.start
        if start is None or not start.trajectory.segments:
            return ()
        following = start.trajectory.turns[start.turns :]
        if not following or following[0].span is None:
            return start.trajectory.segments
        index, first, _ = following[0].span
        cut = start.trajectory.segments[index]
        kept = Segment(cut.ids[:first], cut.mask[:first], cut.log_probs[:first])
        return (*start.trajectory.segments[:index], kept)

    def send(self, reply: Reply) -> str | None:
        """Play one turn; return the observation, or None if no turn may follow.

        The last observation, which the policy need not read, is in ``turns``.

        Raises:
            ConfigurationError: The budget was spent before.
        """
        if not self.may_go_on and not self.is_over:
            raise ConfigurationError(
                f"episode {self.plan.id!r} has spent its budget ({self.plan.budget}); "
                "call finish() as soon as send() gives None"
            )
        if self._keeps_snapshots:
            self.snapshots.append(self.game.snapshot())
        action: Any = reply.action
        if reply.finish == "length":
            text = action if isinstance(action, str) else str(dict(action))
            action = {"text": text, "is_cut": True}
        turn = self._step(action)
        turn = replace(turn, finish=reply.finish, span=reply.span)
        self.turns.append(turn)
        self._cost = self._cost.plus(cost_of(turn, tokens=reply.tokens))
        return turn.observation if self.may_go_on else None

    def finish(
        self,
        segments: Sequence[Segment] = (),
        *,
        usage: Mapping[str, float] | None = None,
        failure: str | None = None,
    ) -> Trajectory:
        """Return the trajectory; one that is not over was put aside, or lost by a failure.

        Args:
            segments: The tokens, where a language model played.
            usage: What it cost.
            failure: What made the policy give up: the episode then does not count.
        """
        plan = self.plan
        outcome = outcome_of(self.info)
        if failure is not None:
            outcome |= _LOST | {"reason": failure}
        parent, shared_turns = self._origin()
        spec = self.env.spec
        wrappers = spec.additional_wrappers if spec else ()
        return Trajectory(
            environment=spec.id if spec else type(self.game).__name__,
            arguments=dict(spec.kwargs) if spec else {},
            env_hash=self._first["env_hash"],
            seed=plan.seed,
            task_id=self._first["task_id"],
            agent=self._agent,
            question=self.question,
            turns=tuple(self.turns),
            outcome=outcome,
            wrappers=tuple(
                {"name": w.name, "entry_point": w.entry_point, "kwargs": w.kwargs} for w in wrappers
            ),
            id=plan.id,
            group=plan.group,
            parent=parent,
            shared_turns=shared_turns,
            segments=tuple(segments),
            usage=dict(usage or {}),
            is_suspended=not self.is_over and failure is None,
        )

    def _origin(self) -> tuple[str, int]:
        """Return the parent and the shared turns; an episode played on keeps its own."""
        start = self.plan.start
        if start is None:
            return "", 0
        if start.trajectory.id == self.plan.id:
            return start.trajectory.parent, start.trajectory.shared_turns
        return start.trajectory.id, start.turns

    def _go_on_from(self, start: Start) -> None:
        kept = start.trajectory.turns[: start.turns]
        if start.snapshot is not None:
            self.game.restore(start.snapshot)
            self.turns.extend(kept)
            self.is_over = start.snapshot.episode.is_over
            return
        for turn in kept:
            played = self._step(turn.action)
            self.turns.append(replace(played, finish=turn.finish, span=turn.span))

    def _step(self, action: Any) -> Turn:
        self.observation, reward, terminated, truncated, self.info = self.env.step(action)
        self.is_over = terminated or truncated
        return Turn(
            action,
            self.info.get("text", self.observation),
            float(reward),
            self.info["reward_terms"],
            self.info["error"],
            self.info["documents"],
        )
