"""A team as a PettingZoo ParallelEnv: everybody who is asked acts at the same time."""

import copy
import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from gymnasium.error import ResetNeeded
from gymnasium.spaces import Dict, Space
from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

from ...corpora.errors import ConfigurationError, raise_unknown
from ...corpora.tasks import Task
from ..spaces import FreeText, ToolCalls
from .game import TeamGame
from .rewards import TeamAct
from .roles import role_of
from .rules import TeamOptions, TeamRules
from .source import World, open_world
from .state import TeamSnapshot, TeamState
from .timeline import draw_html, draw_text
from .trace import Event, measure

__all__ = ["TeamParallelEnv"]

_OPTIONS = ("task", "split", "kind", "hops", "level", "muted")
_STATE_CHARS = 1_000_000

Observations = dict[str, Any]
Infos = dict[str, dict[str, Any]]


class TeamParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """Answer questions as a team: a leader assigns, searchers search, an answerer answers.

    Task: that of the world, a search environment: "Who was born first, ...?". The leader sends
    a sub-question to each searcher that it wants. They search at the same time, each within its
    own turns, and report. The leader reads the reports, and assigns again or hands over to the
    answerer, who sees the question and the reports only.

    Observation: for each agent ``{"text": str}``: what it reads now.

    Actions: tool calls. The leader: ``assign(searcher_0=, searcher_1=, ...)`` and
    ``hand_over()``, or ``answer(text)`` in a team without an answerer. A searcher: the world's
    own tools, such as ``search(query)`` and ``read(document_id)``, and ``report(text)``. The
    answerer: ``answer(text)``. A wrong call never raises: it costs a turn and says what was wrong.

    An agent that is not asked to act stays in ``agents``; its ``info["is_asked"]`` is False and
    its action, if it sends any, is ignored. One that is asked and sends none loses its turn.

    Reward: ``mix`` times the team's outcome, paid to all, and ``1 - mix`` times an agent's local
    terms; ``info["reward_terms"]`` holds each, the team's under ``team/``.

    Ends: for all at once: terminated by an answer, truncated when turns or ticks are spent, or
    when the backend fails (``info["valid"]`` is False).

    Optimum: a return of 1 for ``rewards="exact-match"``.

    Reset options: ``task`` (an id), or ``split, kind, hops, level``; ``muted``, searchers whose
    reports nobody is to read. Unknown ones are ignored with a warning.

    Args:
        world: What is searched; see ``open_world``.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: searchers=3, rounds=3, search_turns=4, reports=200, answerer=True, rewards=,
            local=, mix=, ...; see ``TeamRules``.

    Versions: v0, the first.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "seekgym_team_v0",
        "render_modes": ["ansi", "html"],
        "is_parallelizable": True,
    }

    def __init__(
        self,
        world: World = "phantom:people=1000",
        *,
        render_mode: str | None = None,
        **rules: Unpack[TeamOptions],
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise_unknown("render_mode", render_mode, self.metadata["render_modes"])
        self.rules = TeamRules.of(rules)
        self.source = open_world(world)
        self.game = TeamGame(self.source, self.rules)
        self.render_mode = render_mode
        self.possible_agents = list(self.rules.agents)
        self.agents: list[str] = []
        self.observation_spaces = {agent: self._observation_space() for agent in self.rules.agents}
        self.action_spaces = {agent: self._action_space(agent) for agent in self.rules.agents}
        self.state_space = self._state_space()
        self._state: TeamState | None = None
        identity = [type(self).__name__, self.source.env_hash, self.rules.identity]
        text = json.dumps(identity, sort_keys=True)
        self.env_hash = hashlib.sha256(text.encode()).hexdigest()[:16]

    def observation_space(self, agent: str) -> Space[Any]:
        """Return the space of what an agent sees: always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space[Any]:
        """Return the space of what an agent may do: always the same object."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Draw a task, or take the one asked for, and begin.

        Raises:
            ConfigurationError: An option has a wrong value, or no task fits.
        """
        known = self._known(options)
        muted = known.pop("muted", ())
        for agent in muted:
            if agent not in self.rules.searcher_names:
                raise_unknown("searcher to mute", agent, self.rules.searcher_names)
        self.source.reset(seed=seed, options=known)
        self._state = self.game.begin(self.source.task, frozenset(muted))
        self.agents = self.possible_agents.copy()
        return self._observations(), self._infos({})

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Let everybody who is asked act; the actions of others are ignored.

        Raises:
            ResetNeeded: There is no running episode.
        """
        state = self._running()
        asked = self.game.asked(state)
        calls = {agent: self._call(agent, actions[agent]) for agent in asked if agent in actions}
        acts = self.game.tick(state, calls)
        terms = self._terms(acts)
        is_over = state.phase == "over"
        is_terminated = is_over and state.answer is not None
        rewards = {agent: float(sum(parts.values())) for agent, parts in terms.items()}
        terminations = dict.fromkeys(self.agents, is_terminated)
        truncations = dict.fromkeys(self.agents, is_over and not is_terminated)
        infos = self._infos(terms)
        if is_over:
            self.agents = []
        return self._observations(), rewards, terminations, truncations, infos

    def asked(self) -> tuple[str, ...]:
        """Return who is to act now, in order; nobody once the episode is over."""
        return () if self._state is None else self.game.asked(self._state)

    @property
    def task(self) -> Task:
        """The task of the running or last episode, gold answers included: privileged."""
        return self._begun().episode.task

    @property
    def trace(self) -> tuple[Event, ...]:
        """Every event of the episode so far."""
        return () if self._state is None else tuple(self._state.events)

    def state(self) -> Any:
        """Return all that has happened, as text, for critics that see everything."""
        state = self._begun()
        lines = [f"{e.tick} {e.agent} {e.kind} {e.text}".rstrip() for e in state.events]
        return "\n".join((state.episode.task.question, *lines))[:_STATE_CHARS]

    def snapshot(self) -> TeamSnapshot:
        """Return the state of the episode and of the generator, to come back to."""
        generator = self.source.np_random.bit_generator.state
        return TeamSnapshot.of(self.env_hash, self._begun(), generator)

    def restore(self, snapshot: TeamSnapshot) -> None:
        """Go back to a snapshot, of this environment or of an equal one.

        Raises:
            ConfigurationError: The snapshot is of an environment with other arguments or data.
        """
        if snapshot.env_hash != self.env_hash:
            raise ConfigurationError(
                f"the snapshot is of a team with hash {snapshot.env_hash}, this one has "
                f"{self.env_hash}: arguments or data differ"
            )
        self._state = snapshot.state.copy()
        self.source.np_random.bit_generator.state = copy.deepcopy(dict(snapshot.generator_state))
        self.agents = [] if self._state.phase == "over" else self.possible_agents.copy()

    def render(self) -> Any:
        """Return the timeline so far, as text or as a page; None without a render mode."""
        if self.render_mode is None:
            return None
        return draw_html([self.trace]) if self.render_mode == "html" else draw_text(self.trace)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _observation_space(self) -> Space[Any]:
        return Dict({"text": FreeText(self.game.max_chars)})

    def _action_space(self, agent: str) -> Space[Any]:
        tools = self.game.tools[role_of(agent)].values()
        return ToolCalls([tool.signature for tool in tools])

    def _state_space(self) -> Space[Any]:
        return FreeText(_STATE_CHARS)

    def _call(self, agent: str, action: Any) -> Any:
        """Return the tool call that an action stands for."""
        return action

    def _observation(self, agent: str) -> Any:
        return {"text": self._begun().seats[agent].text}

    def _observations(self) -> Observations:
        return {agent: self._observation(agent) for agent in self.possible_agents}

    def _known(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        given = dict(options or {})
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown:
            warnings.warn(
                f"reset options {unknown} are not known and ignored; known: {', '.join(_OPTIONS)}",
                stacklevel=3,
            )
        return {name: value for name, value in given.items() if name in _OPTIONS}

    def _begun(self) -> TeamState:
        if self._state is None:
            raise ResetNeeded("no episode was begun; call reset() first")
        return self._state

    def _running(self) -> TeamState:
        if self._state is None or self._state.phase == "over":
            raise ResetNeeded("the episode is over or was never begun; call reset() before step()")
        return self._state

    def _terms(self, acts: Sequence[TeamAct]) -> dict[str, dict[str, float]]:
        """Return the terms of every agent's reward in a tick, weighted and mixed."""
        rules = self.rules
        outcomes = {
            f"team/{term.name}": sum(term.weight * term.value(act.outcome) for act in acts)
            for term in rules.terms
        }
        self._begun().team_return += sum(outcomes.values())
        team = {name: rules.mix * value for name, value in outcomes.items()}
        terms = {agent: team.copy() for agent in self.possible_agents}
        for term in rules.local_terms:
            share = (1 - rules.mix) * term.weight
            for agent in self.possible_agents:
                if term.pays(agent):
                    terms[agent][term.name] = 0.0
            for act in acts:
                payee = term.payee(act)
                if term.pays(payee):
                    terms[payee][term.name] += share * term.local_value(act)
        return terms

    def _infos(self, terms: Mapping[str, Mapping[str, float]]) -> Infos:
        state = self._begun()
        asked = set(self.game.asked(state))
        shared = {
            "task_id": state.episode.task.id,
            "env_hash": self.env_hash,
            "round": state.round,
            "tick": state.tick,
            "failure": "infrastructure" if state.has_failed else None,
            "valid": not state.has_failed,
        }
        final = self._final(state) if state.phase == "over" else {}
        infos = {}
        for agent in self.possible_agents:
            seat = state.seats[agent]
            info = shared | {
                "agent": agent,
                "is_asked": agent in asked,
                "tools": self._open_tools(state, agent) if agent in asked else (),
                "error": seat.error,
                "documents": seat.documents,
                "turns": seat.turns,
            }
            if agent in terms:
                info["reward_terms"] = dict(terms[agent])
            for key, value in final.items():
                info[key] = value.copy() if isinstance(value, dict) else value
            infos[agent] = info
        return infos

    def _open_tools(self, state: TeamState, agent: str) -> tuple[str, ...]:
        only = self.game.last_tool(state, agent)
        return tuple(self.game.tools[role_of(agent)]) if only is None else (only,)

    def _final(self, state: TeamState) -> dict[str, Any]:
        """Return what only the end of an episode tells; None where the backend failed."""
        scores = self.game.scores(state)
        task = state.episode.task
        is_valid = not state.has_failed
        return {
            "answer": state.answer,
            "exact_match": scores[0] if is_valid else None,
            "f1": scores[1] if is_valid else None,
            "cover_exact_match": scores[2] if is_valid else None,
            "evidence_recall": state.episode.evidence_recall if is_valid else None,
            "calls": state.episode.calls,
            "gold_answers": task.answers,
            "evidence": task.evidence,
            "metrics": measure(state.events)._asdict(),
            "team_return": state.team_return if is_valid else None,
        }
