"""One learning leader among scripted searchers, as a Gymnasium environment."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from ...corpora.errors import ConfigurationError, raise_unknown
from ...corpora.retrieval import Hit
from ..actions import ToolCall
from ..base import SearchEnv
from ..menu_tools import AssignMenu
from ..rules import RuleOptions, Rules, check_at_least
from ..summaries import summarise
from ..tools import Answer, Search, ToolResult
from ..vector import SearchVectorEnv
from .messages import leader_text
from .roles import WORD_CHARS, Assign, cut_words, sub_questions
from .source import World, open_world
from .state import Sent

__all__ = ["TEAMMATES", "SendOut", "TeamLeaderEnv", "make_vector"]

TEAMMATES = ("scripted", "verbatim")
_MAX_TURNS = 12


class TeamLeaderEnv(SearchEnv):
    """Answer questions by sending sub-questions to searchers and reading their reports.

    Task: that of the world, a search environment; by default questions about an invented
    universe. The leader cannot search itself. In each turn it sends a sub-question to each
    searcher that it wants; they work at the same time, search once, and report.

    Observation: the question; then the reports, each under ``[searcher_0] sub-question``, of at
    most ``reports`` words; the same report is shown once.

    Actions: ``assign(searcher_0=, searcher_1=, ...)``, ``answer(text)``.

    Reward: exact match of the answer, 0 or 1; see ``rewards``.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every task, one step of the proof a turn.

    Arguments:
        world: What is searched: its search must show documents, not only snippets; see
            ``open_world``.
        searchers: How many searchers.
        teammates: ``"scripted"``: a searcher reports the sentences that fit its sub-question
            best; ``"verbatim"``: the first words of what the search showed.
        reports: The longest report, in words.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=12, the others as in ``Rules``.

    Versions: v0, the first.
    """

    menu_tools = AssignMenu()

    def __init__(
        self,
        world: World = "phantom:people=1000",
        *,
        searchers: int = 3,
        teammates: str = "scripted",
        reports: int = 200,
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        made_rules = Rules.of({"max_turns": _MAX_TURNS, "max_observation_chars": 16_000, **rules})
        check_at_least("searchers", searchers, 1)
        check_at_least("reports", reports, 1)
        if teammates not in TEAMMATES:
            raise_unknown("teammates", teammates, TEAMMATES)
        source = open_world(world)
        search = source.tools.get("search")
        if not isinstance(search, Search):
            raise ConfigurationError(
                f"world {world!r}: its search shows no documents, so that a searcher that only "
                "searches has nothing to report; use team.parallel_env for it"
            )
        room = made_rules.max_observation_chars // searchers
        words = min(reports, room // WORD_CHARS)
        super().__init__(
            corpus=source.corpus,
            tasks=source.tasks,
            retriever=source.retriever,
            tools=(SendOut(searchers, source, search, words, teammates), Answer()),
            k=source.k,
            rules=made_rules,
            render_mode=render_mode,
        )

    def search_call(self, query: str) -> ToolCall:
        """Return the call that lets one searcher search for a query."""
        return {"name": "assign", "arguments": {"searcher_0": query}}

    def reading_call(self, document_id: str) -> ToolCall:
        """Return the call that lets one searcher look for a document by its title."""
        return self.search_call(self.corpus[document_id].title)

    def _identity(self) -> dict[str, Any]:
        tool = self.tools["assign"]
        teammates = [tool.teammates, tool.words] if isinstance(tool, SendOut) else []
        return super()._identity() | {"teammates": teammates}


class SendOut(Assign):
    """Assigns, and brings back what each scripted searcher reports.

    Args:
        searchers: How many there are.
        source: Whose corpus they search.
        search: The tool that they search with.
        words: The longest report.
        teammates: How they report.
    """

    def __init__(
        self, searchers: int, source: SearchEnv, search: Search, words: int, teammates: str
    ) -> None:
        super().__init__(searchers, source.corpus)
        self._search = search
        self.words = words
        self.teammates = teammates

    def queries(self, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return what the searchers search for: their sub-questions."""
        asked = sub_questions(arguments).values()
        return [query for question in asked for query in self._search.queries({"query": question})]

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Let each searcher search and report; a document counts once."""
        asked = sub_questions(arguments)
        if not asked:
            return super().run(arguments, rankings)
        sent, documents = [], list[str]()
        for (agent, question), ranking in zip(asked.items(), rankings, strict=True):
            found = self._search.run({"query": question}, [ranking])
            report = cut_words(self._report(question, found), self.words)
            sent.append(Sent(agent, 0, question, report, found.documents, 0))
            documents += found.documents
        return ToolResult(leader_text(sent), tuple(dict.fromkeys(documents)))

    def _report(self, question: str, found: ToolResult) -> str:
        if self.teammates == "verbatim" or not found.documents:
            return found.observation
        return summarise(question, found.observation, self.words)


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector of TeamLeaderEnv over one world; the arguments are those of TeamLeaderEnv."""
    return SearchVectorEnv(TeamLeaderEnv(**arguments), num_envs, autoreset_mode=autoreset_mode)
