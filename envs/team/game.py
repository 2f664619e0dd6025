"""The game of a team, apart from any interface: who acts when, and what follows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...corpora.errors import BackendError
from ...corpora.tasks import Task
from ...corpora.text import cut_text, replace_surrogates
from ..actions import ProtocolError
from ..backend import Rankings, retrieve
from ..base import SearchEnv
from ..calls import read_call
from ..episode import Episode, Pending
from ..rules import Rules
from ..scoring import score_answer
from ..tools import Answer, Tool, ToolResult
from .messages import answerer_text, idle_text, leader_text
from .rewards import TeamAct
from .roles import Assign, HandOver, Report, Role, cut_words, role_of, sub_questions
from .rules import TeamRules
from .state import Seat, Sent, TeamState
from .trace import find_conflicts

__all__ = ["FATAL", "TeamGame"]

FATAL = ("crashed", "timed_out")  # codes after which an agent is not asked again in its assignment
_NO_ACTION = ProtocolError("no_action", "No action came.")
_TEAM_BUDGET = ProtocolError("team_budget", "The team's searches are spent: report what you have.")
_ANSWER_TURNS = 2
_ENDLESS = 10**9


class _Move(NamedTuple):
    agent: str
    pending: Pending
    is_last: bool  # the agent's turn takes nothing but one tool


class TeamGame:
    """Plays one tick after the other on a state that it is given.

    Args:
        source: The search environment whose corpus, retriever and tools are used.
        rules: The rules of the team.
    """

    def __init__(self, source: SearchEnv, rules: TeamRules) -> None:
        self.source = source
        self.searchers = rules.searcher_names
        self.rules = rules
        self.search_tools = [tool for name, tool in source.tools.items() if name != "answer"]
        self.max_chars = max(source.rules.max_observation_chars, rules.most_report_chars)
        ending: Tool = HandOver() if rules.answerer else Answer()
        self.tools: dict[Role, dict[str, Tool]] = {
            "leader": _by_name(Assign(rules.searchers, source.corpus), ending),
            "searcher": _by_name(*self.search_tools, Report(rules.reports)),
            "answerer": _by_name(Answer()),
        }
        self.ending = ending.signature.name
        self._episode_rules = Rules(
            max_turns=_ENDLESS, rewards=rules.rewards, convention=rules.convention
        )

    def begin(self, task: Task, muted: frozenset[str] = frozenset()) -> TeamState:
        """Return the state before the first tick.

        Args:
            task: What is asked.
            muted: Searchers whose reports nobody is to read.
        """
        seats = {agent: Seat(text=idle_text(role_of(agent))) for agent in self.rules.agents}
        state = TeamState(Episode(task), seats, muted, calls_left=self.rules.team_calls)
        seats["leader_0"].text = self._fit(task.question)
        detail = {"task": task.id, "question": task.question, "agents": self.rules.agents}
        state.emit("spawn", "leader_0", detail=detail)
        return state

    def asked(self, state: TeamState) -> tuple[str, ...]:
        """Return who is to act in this tick, in order."""
        if state.phase == "lead":
            return ("leader_0",)
        if state.phase == "answer":
            return ("answerer_0",)
        if state.phase == "over":
            return ()
        return tuple(name for name in self.searchers if state.seats[name].question)

    def last_tool(self, state: TeamState, agent: str) -> str | None:
        """Return the only tool that an agent's turn takes, if it is such a turn."""
        role = role_of(agent)
        if role == "leader":
            is_spent = state.calls_left is not None and state.calls_left <= 0
            is_last = is_spent or state.lead_turns >= self.rules.rounds
            return self.ending if is_last else None
        if role == "searcher":
            is_spent = state.calls_left is not None and state.calls_left <= 0
            is_last = is_spent or state.seats[agent].turns >= self.rules.search_turns - 1
            return "report" if is_last else None
        return "answer"

    def tick(self, state: TeamState, actions: Mapping[str, Any]) -> list[TeamAct]:
        """Let everybody who is asked act at the same time, and return what each did.

        An agent that is asked and sends nothing loses its turn. Actions of others are ignored.
        """
        moves = [self._read(state, agent, actions) for agent in self.asked(state)]
        state.tick += 1
        state.calls_left = self._calls_after(state, moves)
        groups = [move.pending.queries for move in moves]
        rankings = retrieve(self.source.retriever, groups, self.source.k)
        acts = []
        try:
            for move, ranking in zip(moves, rankings, strict=True):
                acts.append(self._act(state, move, ranking))
        except BackendError as error:
            self._stop(state, "infrastructure", str(error)[:200])
            state.has_failed = True
            return []
        self._go_on(state)
        return acts

    def scores(self, state: TeamState) -> tuple[float, float, float]:
        """Return exact match, F1 and cover exact match of a finished episode; 0 unanswered."""
        if state.answer is None:
            return 0.0, 0.0, 0.0
        task, convention = state.episode.task, self.rules.convention
        scores = score_answer(
            state.answer, task.answers, is_answer_set=task.is_answer_set, convention=convention
        )
        return scores.exact_match, scores.f1, scores.cover_exact_match

    def _calls_after(self, state: TeamState, moves: list[_Move]) -> int | None:
        """Take the searches of a tick from the team's budget; those beyond it are refused."""
        left = state.calls_left
        if left is None:
            return None
        for place, move in enumerate(moves):
            if not self._is_call(move):
                continue
            if left > 0:
                left -= 1
            else:
                moves[place] = move._replace(pending=Pending(None, {}, _TEAM_BUDGET))
        return left

    def _is_call(self, move: _Move) -> bool:
        return move.pending.error is None and move.pending.tool in self.search_tools

    def _read(self, state: TeamState, agent: str, actions: Mapping[str, Any]) -> _Move:
        action = actions.get(agent, _NO_ACTION)
        only = self.last_tool(state, agent)
        if role_of(agent) == "answerer":
            is_last = state.seats[agent].turns >= _ANSWER_TURNS - 1
        else:
            is_last = only is not None
        return _Move(
            agent, read_call(action, self.tools[role_of(agent)], last_turn_tool=only), is_last
        )

    def _act(self, state: TeamState, move: _Move, rankings: Rankings | BackendError) -> TeamAct:
        """Run one agent's tool, and take the result into the state."""
        agent, pending, _ = move
        result = _run(pending, rankings)
        seat = state.seats[agent]
        outcome = state.episode.advance(pending, result, self._episode_rules)
        others = self._shown_to_others(state, agent, result.documents)
        seat.turns += 1
        seat.error, seat.documents = result.error, result.documents
        words = report = None
        if role_of(agent) == "searcher":
            words = report = self._searched(state, move, result)
        elif role_of(agent) == "leader":
            words = self._led(state, move, result)
        else:
            self._answered(state, move, result)
        asked = sub_questions(pending.arguments) if words and agent == "leader_0" else {}
        return TeamAct(
            agent=agent,
            outcome=outcome,
            shown_to_others=others,
            sub_questions=tuple(asked.values()),
            report=report,
            seen=tuple(seat.seen),
            words=len((words or "").split()),
            turns=state.episode.turn,
            ticks=state.tick,
        )

    def _shown_to_others(
        self, state: TeamState, agent: str, documents: Sequence[str]
    ) -> tuple[str, ...]:
        if not documents or role_of(agent) != "searcher":
            return ()
        others = [state.seats[name] for name in self.searchers if name != agent]
        known = dict.fromkeys(documents)
        return tuple(d for d in known if any(d in other.ever_shown for other in others))

    def _searched(self, state: TeamState, move: _Move, result: ToolResult) -> str | None:
        """Take a searcher's turn, and return the report that it sent, or None."""
        agent, pending, is_last = move
        seat = state.seats[agent]
        fields: dict[str, Any] = {"name": _name(pending), "error": result.error}
        if pending.tool is not None and pending.tool.signature.name == "report":
            report = cut_words(pending.arguments["text"], self.rules.reports)
            number = state.emit("report", agent, seat.last, text=report, to=("leader_0",), **fields)
            self._end_assignment(state, agent, report, number)
            return report
        if pending.tool is None:
            number = state.emit("fault", agent, seat.last, text=_shown(result), **fields)
        else:
            number = state.emit(
                "call",
                agent,
                seat.last,
                text=", ".join(map(str, pending.arguments.values()))[:1_000],
                documents=result.documents,
                **fields,
            )
        seat.shown.update(dict.fromkeys(result.documents))
        seat.ever_shown.update(dict.fromkeys(result.documents))
        if pending.tool is not None:
            seat.seen.append(result.observation)
        note = f"\n\n({pending.note})" if pending.note else ""
        if result.error in FATAL or is_last:
            self._end_assignment(state, agent, "", number)
        else:
            is_next_last = self.last_tool(state, agent) is not None
            ending = "\n\nThis is your last turn, and it takes nothing but your report."
            seat.text = self._fit(result.observation, note + (ending if is_next_last else ""))
        return None

    def _end_assignment(self, state: TeamState, agent: str, report: str, event: int) -> None:
        seat = state.seats[agent]
        text = "" if agent in state.muted else report
        sent = Sent(agent, state.round, seat.question, text, tuple(seat.shown), event)
        state.sent.append(sent)
        seat.question, seat.text, seat.turns = "", idle_text("searcher"), 0
        seat.shown = {}

    def _led(self, state: TeamState, move: _Move, result: ToolResult) -> str | None:
        """Take the leader's turn, and return what it assigned, or None."""
        agent, pending, is_last = move
        seat = state.seats[agent]
        state.lead_turns += 1
        name = _name(pending)
        if result.error is None and name == "assign":
            return self._assign(state, sub_questions(pending.arguments))
        if result.answer is not None:
            seat.last = state.emit("answer", agent, seat.last, name=name, text=result.answer)
            state.answer = result.answer
            self._stop(state, "answered")
        elif result.error is None:
            number = state.emit("hand_over", agent, seat.last, name=name, to=("answerer_0",))
            self._call_answerer(state, number, {})
        else:
            state.emit(
                "fault", agent, seat.last, name=name, text=_shown(result), error=result.error
            )
            seat.text = self._fit(f"{result.observation}\n\n{self._outlook(state)}")
            if result.error in FATAL or is_last:
                self._give_up_leading(state)
        return None

    def _assign(self, state: TeamState, asked: Mapping[str, str]) -> str:
        state.round += 1
        text = "\n".join(asked.values())
        leader = state.seats["leader_0"]
        number = state.emit(
            "assign", "leader_0", leader.last, name="assign", text=text, to=tuple(asked)
        )
        for agent, question in asked.items():
            seat = state.seats[agent]
            seat.question, seat.turns, seat.text = question, 0, self._fit(question)
            if seat.last is None:
                state.emit("spawn", agent, number)
            else:
                seat.last = number
        leader.text = idle_text("leader")
        state.phase = "search"
        return " ".join(asked.values())

    def _give_up_leading(self, state: TeamState) -> None:
        """End the leader's part: the answerer has what there is, or the episode is over."""
        if self.rules.answerer:
            self._call_answerer(state, state.seats["leader_0"].last, {"forced": True})
        else:
            self._stop(state, "no answer")

    def _call_answerer(
        self, state: TeamState, number: int | None, detail: Mapping[str, Any]
    ) -> None:
        answerer = state.seats["answerer_0"]
        state.emit("spawn", "answerer_0", number)
        reports = [sent.event for sent in state.sent]
        detail = {**detail, **_aggregated(state.sent)}
        state.emit("aggregate", "answerer_0", answerer.last, *reports, detail=detail)
        answerer.text = self._fit(answerer_text(state.episode.task.question, state.sent))
        state.seats["leader_0"].text = idle_text("leader")
        state.phase = "answer"

    def _answered(self, state: TeamState, move: _Move, result: ToolResult) -> None:
        agent, pending, is_last = move
        seat = state.seats[agent]
        if result.answer is not None:
            state.emit("answer", agent, seat.last, name="answer", text=result.answer)
            state.answer = result.answer
            self._stop(state, "answered")
            return
        name = _name(pending)
        state.emit("fault", agent, seat.last, name=name, text=_shown(result), error=result.error)
        seat.text = self._fit(f"{result.observation}\n\nThis is your last turn: answer(text).")
        if is_last or result.error in FATAL:
            self._stop(state, "no answer")

    def _go_on(self, state: TeamState) -> None:
        """Pass from searching to leading once nobody searches, and mind the clock of ticks."""
        if state.phase == "search" and not self.asked(state):
            state.phase = "lead"
            leader = state.seats["leader_0"]
            this_round = [sent for sent in state.sent if sent.round == state.round]
            this_round.sort(key=lambda sent: self.rules.agents.index(sent.agent))
            leader.documents = tuple(dict.fromkeys(d for s in this_round for d in s.documents))
            leader.text = self._fit(leader_text(this_round), f"\n\n{self._outlook(state)}")
            reports = [sent.event for sent in this_round]
            state.emit(
                "aggregate", "leader_0", *reports, detail=_aggregated(this_round, state.sent)
            )
        if state.tick >= self.rules.longest and state.phase != "over":
            self._stop(state, "out of ticks")

    def _outlook(self, state: TeamState) -> str:
        if self.last_tool(state, "leader_0") is not None:
            return f"This is your last turn, and it takes nothing but {self.ending}."
        left = self.rules.rounds - state.lead_turns
        return f"You may assign {left} more time{'s' if left > 1 else ''}."

    def _stop(self, state: TeamState, why: str, text: str = "") -> None:
        state.phase = "over"
        last = [seat.last for seat in state.seats.values()]
        detail = {"why": why, "task": state.episode.task.id}
        number = len(state.events) - 1 if state.answer is not None else None
        parents = [number] if number is not None else last
        state.emit("stop", "leader_0", *parents, text=text, detail=detail)
        for seat in state.seats.values():
            seat.text, seat.question = "The episode is over.", ""

    def _fit(self, text: str, ending: str = "") -> str:
        return cut_text(replace_surrogates(text), self.max_chars - len(ending)) + ending


def _by_name(*tools: Tool) -> dict[str, Tool]:
    return {tool.signature.name: tool for tool in tools}


def _run(pending: Pending, rankings: Rankings | BackendError) -> ToolResult:
    if pending.error is not None or pending.tool is None:
        error = pending.error or ProtocolError("malformed", "This is no tool call.")
        return ToolResult(error.reason, error=error.code)
    if isinstance(rankings, BackendError):
        raise rankings
    return pending.tool.run(pending.arguments, rankings)


def _name(pending: Pending) -> str | None:
    return None if pending.tool is None else pending.tool.signature.name


def _shown(result: ToolResult) -> str:
    return cut_text(replace_surrogates(result.observation), 200)


def _aggregated(read: Sequence[Sent], known: Sequence[Sent] = ()) -> dict[str, Any]:
    """Say which reports contradict each other, and who sent none."""
    said = [(sent.event, sent.text) for sent in (known or read) if sent.text]
    return {
        "conflicts": tuple(find_conflicts(said)),
        "missing": tuple(sent.agent for sent in read if not sent.text),
    }
