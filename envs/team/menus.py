"""The team as menus: Discrete choices with masks, and Box features, for plain MARL libraries."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar, Unpack

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space

from ...corpora.errors import ConfigurationError
from ..actions import ProtocolError, ToolCall
from ..menus import WIDTH, Choice, answer_choices, find_clues, make_choice, pack_menu
from ..summaries import Sentence, find_names, split_sentences, summarise
from ..tools import Search
from .parallel import TeamParallelEnv
from .roles import role_of
from .rules import TeamOptions
from .source import World
from .state import TeamSnapshot, TeamState

__all__ = ["MENU_SIZE", "TeamMenuEnv"]

MENU_SIZE = 24
_GLOBALS = 8
_SUBJECTS = 5
_QUERIES = 8
_ANSWERS = 12
_ABOUT = " | "  # between what a searcher is to begin with, and the question


class TeamMenuEnv(TeamParallelEnv):
    """A team whose agents choose from menus: no language model is needed.

    Observation: for each agent ``{"observation": Box, "action_mask": Box}``: 8 numbers about
    the agent and the round, then the features of each of 24 choices (``envs.menus.FEATURES``),
    all in [0, 1]; and which choices are legal. All agents' spaces are equal.

    Actions: the place of a choice, 0 to 23. Place 0 is "wait", the only legal one for an agent
    that is not asked. ``labels(agent)`` says what each stands for.

    The leader chooses what the searchers are to begin with: names of the question or of reports,
    one for one searcher, or spread over all. A searcher searches for it, then for names that it
    read, and reports the sentences that fit the question best. The answerer chooses an answer
    among the names and values in the reports. All else is as in ``TeamParallelEnv``.

    Args:
        world: What is searched; its search must show documents, not only snippets.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: As in ``TeamParallelEnv``.
    """

    globals_size: ClassVar[int] = _GLOBALS
    metadata: dict[str, Any] = {**TeamParallelEnv.metadata, "name": "seekgym_team_menu_v0"}  # noqa: RUF012

    def __init__(
        self,
        world: World = "phantom:people=1000",
        *,
        render_mode: str | None = None,
        **rules: Unpack[TeamOptions],
    ) -> None:
        self._menus: dict[str, list[Choice]] = {}
        self._menus_tick = -1
        super().__init__(world, render_mode=render_mode, **rules)
        if not isinstance(self.source.tools.get("search"), Search):
            raise ConfigurationError(
                f"world {world!r}: its search shows no documents, and menus have no choice that "
                "opens one; use team.parallel_env for it"
            )

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Draw a task, or take the one asked for, and begin."""
        self._menus_tick = -1
        return super().reset(seed=seed, options=options)

    def restore(self, snapshot: TeamSnapshot) -> None:
        """Go back to a snapshot, of this environment or of an equal one."""
        self._menus_tick = -1
        super().restore(snapshot)

    def labels(self, agent: str) -> list[str]:
        """Return what each legal choice of an agent stands for, in order."""
        return [choice.label for choice in self._menu(agent)] or ["wait"]

    def state(self) -> np.ndarray:
        """Return what all agents see, one after the other, for centralised critics."""
        seen = [self._observation(agent)["observation"] for agent in self.possible_agents]
        return np.concatenate(seen)

    def _observation_space(self) -> Space[Any]:
        length = _GLOBALS + MENU_SIZE * WIDTH
        return Dict(
            {
                "observation": Box(0.0, 1.0, (length,), np.float32),
                "action_mask": Box(0, 1, (MENU_SIZE,), np.int8),
            }
        )

    def _action_space(self, agent: str) -> Space[Any]:
        return Discrete(MENU_SIZE)

    def _state_space(self) -> Space[Any]:
        length = len(self.rules.agents) * (_GLOBALS + MENU_SIZE * WIDTH)
        return Box(0.0, 1.0, (length,), np.float32)

    def _call(self, agent: str, action: Any) -> Any:
        if isinstance(action, ProtocolError):
            return action
        menu = self._menu(agent)
        try:
            place = int(action)
        except (TypeError, ValueError, OverflowError):
            place = 0
        if not 1 <= place <= len(menu):
            return ProtocolError("no_choice", f"The menu has the choices 1 to {len(menu)}.")
        chosen = menu[place - 1].action
        return self._report(agent) if chosen["name"] == "report" else chosen

    def _observation(self, agent: str) -> Any:
        features, mask = pack_menu(self._menu(agent), MENU_SIZE)
        seen = np.concatenate((self._globals(agent), features))
        return {"observation": seen, "action_mask": mask}

    def _globals(self, agent: str) -> np.ndarray:
        state, rules = self._begun(), self.rules
        role, seat = role_of(agent), state.seats[agent]
        reports = sum(bool(sent.text) for sent in state.sent)
        numbers = (
            role == "leader",
            role == "searcher",
            role == "answerer",
            agent in self.asked(),
            state.lead_turns / (rules.rounds + 1),
            min(1.0, seat.turns / rules.search_turns),
            min(1.0, reports / (rules.rounds * rules.searchers)),
            self.game.last_tool(state, agent) is not None,
        )
        return np.array(numbers, dtype=np.float32)

    def _menu(self, agent: str) -> list[Choice]:
        """Return the choices of an agent; none if it is not asked."""
        state = self._begun()
        if self._menus_tick != state.tick:
            self._menus, self._menus_tick = {}, state.tick
        if agent not in self._menus:
            self._menus[agent] = self._made(state, agent) if agent in self.asked() else []
        return self._menus[agent]

    def _made(self, state: TeamState, agent: str) -> list[Choice]:
        only = self.game.last_tool(state, agent)
        role = role_of(agent)
        if role == "answerer":
            return self._answers(state)
        if role == "searcher":
            return self._searches(state, agent, may_search=only is None)
        assignments = [] if only else self._assignments(state)
        if self.rules.answerer:
            return [*assignments, make_choice("finish", "", "hand_over", {})]
        return [*assignments, *self._answers(state)]

    def _assignments(self, state: TeamState) -> list[Choice]:
        """Return what the leader may assign: each subject to one searcher, or several to all."""
        question = state.episode.task.question
        begun = {sent.question.partition(_ABOUT)[0] for sent in state.sent}
        clues = [c for c in find_clues(question, self._reported(state)) if c.is_name]
        subjects = [(name, (1.0, 1.0, 1.0, 0.0)) for name in find_names(question) or (question,)]
        subjects += [(clue.text, clue.features) for clue in clues]
        subjects = sorted(subjects[:_SUBJECTS])
        names = self.rules.searcher_names
        choices = []
        for subject, clue in subjects:
            one = {names[0]: f"{subject}{_ABOUT}{question}"}
            is_new = subject not in begun
            choices.append(make_choice("ask", subject, "assign", one, clue, is_new=is_new))
        for start in range(len(subjects)):
            turned = [subjects[(start + step) % len(subjects)] for step in range(len(names))]
            spread = {
                name: f"{subject}{_ABOUT}{question}"
                for name, (subject, _) in zip(names, turned, strict=True)
            }
            label = ", ".join(subject for subject, _ in turned)
            clue = subjects[start][1]
            is_new = all(subject not in begun for subject, _ in turned)
            choices.append(make_choice("ask", label, "assign", spread, clue, is_new=is_new))
        return choices

    def _searches(self, state: TeamState, agent: str, *, may_search: bool) -> list[Choice]:
        """Return what a searcher may do: begin, search for a name that it read, or report."""
        seat = state.seats[agent]
        begin, _, question = seat.question.partition(_ABOUT)
        asked = {event.text for event in state.events if event.agent == agent}
        clues = find_clues(question or begin, self._seen(state, agent))
        choices = []
        if may_search and begin not in asked:
            clue = (1.0, 1.0, 1.0, 0.0)
            choices.append(make_choice("ask", begin, "search", {"query": begin}, clue))
        new = (clue for clue in clues if may_search and clue.is_name and clue.text not in asked)
        for name in sorted(islice(new, _QUERIES)):
            query = {"query": name.text}
            choices.append(make_choice("ask", name.text, "search", query, name.features))
        best = clues[0].features if clues else (0.0, 0.0, 0.0, 0.0)
        return [*choices, make_choice("finish", "", "report", {"text": ""}, best)]

    def _report(self, agent: str) -> ToolCall:
        """Return the call that reports the sentences that fit the question best."""
        seat = self._begun().seats[agent]
        text = summarise(seat.question, "\n".join(seat.seen), self.rules.reports)
        return {"name": "report", "arguments": {"text": text}}

    def _answers(self, state: TeamState) -> list[Choice]:
        question = state.episode.task.question
        clues = find_clues(question, self._reported(state))
        return answer_choices(clues, _ANSWERS)

    def _reported(self, state: TeamState) -> list[Sentence]:
        return [part for sent in state.sent for part in split_sentences(sent.text)]

    def _seen(self, state: TeamState, agent: str) -> Sequence[Sentence]:
        return [part for text in state.seats[agent].seen for part in split_sentences(text)]
