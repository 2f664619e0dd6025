"""Questions answered on the web: search, open pages, find texts in them, follow links, cite."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from ..corpora.documents import Corpus, Document
from ..corpora.errors import ConfigurationError, PageError
from ..corpora.retrieval import Hit
from ..corpora.shipped import load_corpus, load_tasks
from ..corpora.site import Page, Site
from ..corpora.sites import OfflineSite, load_site, open_site
from ..corpora.tasks import Split, TaskSet
from .actions import ToolCall
from .backend import BrokenRetriever, Rankings
from .base import SearchEnv, Step
from .citations import is_stated, supported_citations
from .episode import Pending
from .findings import Finding
from .menu_tools import BrowseMenu
from .rules import RuleOptions, Rules, check_at_least
from .tools import ToolResult
from .vector import SearchVectorEnv
from .web_pages import Shown
from .web_tools import BrokenSite, Browser, Place, WebTool, web_tools

__all__ = ["WebEnv", "make_vector"]

_REAL = "hotpotqa-100"
_MAX_TURNS = 32
_RESULTS = 10  # of a page, for sites that do not say
_RESULT_CHARS = 700


class WebEnv(SearchEnv):
    """Answer questions on a site of hyperlinked pages, and name the pages that say so.

    Task: a question whose answer takes facts from several pages. The default site is the
    documentation of Python's standard library, as ``pydoc`` writes it for the interpreter that
    runs: real pages, and knowledge that a model may have by heart. Made worlds as pages
    (``knowledge:``, ``phantom:``) cannot be known. Every task of these sites carries a proof
    that the site's own search plays.

    Observation: the question; then what the tool gave, at most ``max_observation_chars``
    characters: results with rank, title, address and snippet, or a part of a page in numbered
    paragraphs, its links numbered. Lines of a page stand behind a number or are indented, and
    are marked as data that nobody vouches for.

    Actions: ``search(query, page=)``, ``open(url, page=)`` with an address, a rank or a link's
    number, ``find(text)``, ``expand(ranks)``, ``back()``, ``answer(text, citations=)``. A page
    that cannot be shown is no error: the observation says why, ``info["page_error"]`` how.

    Reward: exact match of the answer, 0 or 1; see ``rewards``, and ``CitationRecall``,
    ``CitationPrecision``, ``OpenedEvidence``.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every task, with precise citations.

    Arguments:
        site: ``"pydoc"``; a world, ``"knowledge:entities=600,seed=1"`` or
            ``"phantom:people=50"``; the path of a folder of HTML files or of a WARC file; or a
            Site object.
        tasks: The path of a JSONL file, or a TaskSet, whose evidence is addresses of pages; if
            left out, the site's own.
        questions: How many tasks are drawn, where the site has its own.
        search: For ``site="live"``, the live web: the search engine, for example
            ``"searxng:http://127.0.0.1:8888"``. Its tasks, if left out, are the shipped real
            questions, without evidence. See ``seekgym.corpora.live.LiveSite``.
        record: For the live web: a folder to record every answer in.
        replay: For the live web: a folder to answer from, without a network.
        split: ``"all"``, ``"train"`` or ``"test"``.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=32, the others as in ``Rules``.

    Versions: v0, the first.
    """

    tasks_argument = "questions"
    menu_tools = BrowseMenu()

    def __init__(
        self,
        site: str | os.PathLike[str] | Site = "pydoc",
        tasks: str | os.PathLike[str] | TaskSet | None = None,
        *,
        questions: int = 500,
        search: str | None = None,
        record: str | None = None,
        replay: str | None = None,
        split: Split = "all",
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        made_rules = Rules.of({"max_turns": _MAX_TURNS, **rules})
        check_at_least("questions", questions, 1)
        live = {"search": search, "record": record, "replay": replay}
        if site == "live":
            site, tasks = _live(live), _real_questions() if tasks is None else tasks
        elif any(live.values()):
            given = next(name for name, value in live.items() if value)
            raise ConfigurationError(f"{given}={live[given]!r} is for site='live'")
        found, drawn = _site_and_tasks(site, tasks, questions)
        k = found.page_size if isinstance(found, OfflineSite) else _RESULTS
        max_chars = made_rules.max_observation_chars
        if max_chars < k * _RESULT_CHARS:
            raise ConfigurationError(
                f"max_observation_chars={max_chars} is too little for {k} results; "
                f"it needs {k * _RESULT_CHARS}"
            )
        longest = max(len(task.proof) for task in drawn)
        if made_rules.max_turns <= 2 * longest:
            raise ConfigurationError(
                f"max_turns must be at least {2 * longest + 1}, got {made_rules.max_turns}: the "
                f"longest proof takes {longest} pages, each searched for and opened"
            )
        self.site = found
        self.browser = Browser(found, max_chars=max_chars)
        super().__init__(
            corpus=found.corpus if isinstance(found, OfflineSite) else _named_pages(drawn),
            tasks=drawn,
            retriever=found.retriever if isinstance(found, OfflineSite) else _SiteRetriever(found),
            tools=web_tools(self.browser),
            k=k,
            rules=made_rules,
            split=split,
            render_mode=render_mode,
        )

    def finish(self, pending: Pending, rankings: Rankings | Any) -> Step:
        """Run the tool, and tell beside the base's info what citations are worth."""
        query = pending.arguments.get("query")
        if isinstance(query, str) and pending.error is None:
            asked = (f"{query} page {pending.arguments.get('page', 1)}",)
            pending = pending._replace(queries=asked)  # by which a repeated search is known
        observation, reward, terminated, truncated, info = super().finish(pending, rankings)
        info["page_error"] = _place(self._begun().memory).page_error
        if terminated or truncated:
            info |= self._citation_info(info["failure"] is None)
        return observation, reward, terminated, truncated, info

    def reading_call(self, document_id: str) -> ToolCall:
        """Return the call that opens a page, at the part that states what the task needs."""
        try:
            page = self.site.open(document_id)
        except PageError:
            return _open(document_id, 1)
        parts = self.browser.parts(page)
        lines, following = self._wanted(document_id)
        places = [
            number
            for number, part in enumerate(parts, start=1)
            if any(is_stated(line, _text(page, part)) for line in lines)
        ]
        followed = [n for n, part in enumerate(parts, start=1) if f"<{following}>" in part.text]
        return _open(document_id, [1, *places, *followed][-1])

    def _wanted(self, document_id: str) -> tuple[list[str], str | None]:
        """Return what a page must be opened for: facts, and the link that is followed next."""
        proof = self.task.proof
        places = [place for place, step in enumerate(proof) if step.document == document_id]
        lines = [line for place in places for line in proof[place].fact.split("\n") if line]
        rest = proof[places[-1] + 1 :] if places else ()
        return lines, rest[0].document if rest and not rest[0].query else None

    def answer_call(self, text: str) -> ToolCall:
        """Return the answer, citing the evidence that was opened."""
        seen = self._begun().documents
        cited = " ".join(document for document in self.task.evidence if document in seen)
        return {"name": "answer", "arguments": {"text": text, "citations": cited}}

    def break_backend(self) -> ToolCall:
        """Put a site in place that fails, and return a call that asks it."""
        self.site, self.retriever = BrokenSite(), BrokenRetriever()
        self.browser = Browser(self.site, max_chars=self.rules.max_observation_chars)
        self.tools = {tool.signature.name: tool for tool in web_tools(self.browser)}
        return self.search_call("anything")

    def findings(self) -> list[Finding]:
        """Say how many facts of the proofs stand word for word in the pages they name."""
        steps = [step for task in self.all_tasks for step in task.proof if step.fact]
        lines = [(step.document, line) for step in steps for line in step.fact.split("\n")]
        texts = {document: self.corpus[document].text for document, _ in lines}
        stated = sum(is_stated(line, texts[document]) for document, line in lines)
        return [Finding("facts", f"{stated} of {len(lines)} stand word for word in their pages")]

    def _identity(self) -> dict[str, Any]:
        return super()._identity() | {"site": self.site.name}

    def _run(self, pending: Pending, rankings: Rankings | Any) -> ToolResult:
        tool, episode = pending.tool, self._begun()
        place = replace(_place(episode.memory), page_error=None)
        episode.memory = place
        if pending.error is not None or not isinstance(tool, WebTool):
            return super()._run(pending, rankings)
        try:
            result, episode.memory = tool.go(pending.arguments, place)
        except PageError as error:  # the open page cannot be opened again
            episode.memory = replace(place, page_error=error.code)
            return ToolResult(error.reason)
        if result.citations:
            cited = tuple(dict.fromkeys(map(self._address, result.citations)))
            seen = {*episode.documents}
            supported = supported_citations(cited, episode.task, seen, self.site)
            result = replace(result, citations=cited, supported=supported)
            episode.memory = replace(place, citations=cited, supported=supported)
        return result

    def _address(self, url: str) -> str:
        address = self.site.address(url) if isinstance(self.site, OfflineSite) else None
        return address or url

    def _citation_info(self, is_valid: bool) -> dict[str, Any]:
        place, evidence = _place(self._begun().memory), set(self.task.evidence)
        found = len(place.supported)
        precision = found / len(place.citations) if place.citations else 0.0
        recall = len(evidence & {*place.supported}) / len(evidence) if evidence else None
        return {
            "citations": place.citations,
            "citation_precision": precision if is_valid else None,
            "citation_recall": recall if is_valid else None,
        }


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector of WebEnv over one site; the arguments are those of WebEnv."""
    return SearchVectorEnv(WebEnv(**arguments), num_envs, autoreset_mode=autoreset_mode)


class _SiteRetriever:
    """A site's search as a retriever: what proofs and certificates ask."""

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def name(self) -> str:
        return self._site.name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [
            [Hit(result.url, -float(rank)) for rank, result in enumerate(self._first(query, k))]
            for query in queries
        ]

    def _first(self, query: str, k: int) -> list[Any]:
        return list(self._site.search(query, 1))[:k] if query.strip() else []


def _site_and_tasks(
    site: str | os.PathLike[str] | Site,
    tasks: str | os.PathLike[str] | TaskSet | None,
    questions: int,
) -> tuple[Site, TaskSet]:
    """Return the site, and the tasks that were given or that it has."""
    if tasks is None:
        if not isinstance(site, (str, os.PathLike)):
            raise ConfigurationError("tasks is missing: a Site object comes without tasks")
        return open_site(os.fspath(site), questions)
    found = load_site(os.fspath(site)) if isinstance(site, (str, os.PathLike)) else site
    if isinstance(tasks, TaskSet):
        return found, tasks
    if isinstance(found, OfflineSite):
        return found, load_tasks(tasks, found.corpus)
    return found, TaskSet.from_jsonl(tasks)


def _live(arguments: dict[str, str | None]) -> Site:
    from ..corpora.live import live_site  # httpx, an extra

    return live_site(**arguments)


def _real_questions() -> TaskSet:
    """Return the shipped questions; their evidence is no address, so they have none here."""
    tasks = load_tasks(_REAL, load_corpus(_REAL))
    return TaskSet((replace(task, evidence=(), proof=()) for task in tasks), name=f"{_REAL}-live")


def _named_pages(tasks: TaskSet) -> Corpus:
    """Return the pages that the tasks name, as documents without text: for a site without end."""
    urls = dict.fromkeys(url for task in tasks for url in task.evidence)
    documents = tuple(Document(url, url, "", url) for url in urls) or (Document("none", "", ""),)
    ids = [document.id for document in documents]
    return Corpus(ids, documents.__getitem__, name="pages of the tasks")


def _text(page: Page, part: Shown) -> str:
    return "\n".join(page.paragraphs[part.first : part.end])


def _place(memory: object) -> Place:
    return memory if isinstance(memory, Place) else Place()


def _open(url: str, part: int) -> ToolCall:
    arguments: dict[str, Any] = {"url": url}
    return {"name": "open", "arguments": arguments if part == 1 else {**arguments, "page": part}}
