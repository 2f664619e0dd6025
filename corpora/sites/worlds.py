"""Made worlds as sites: articles with infoboxes, lists, pages of namesakes, and dead links.

An infobox repeats what the article below it states, and nothing else, so that no question gets
easier by it. Lists and pages of namesakes name entities and state no facts.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote

from ..documents import Corpus, Document
from ..errors import ConfigurationError
from ..knowledge import KnowledgeWorld
from ..phantom import PhantomWorld
from ..phantom.articles import stated_relatives
from ..phantom.vocabulary import ATTRIBUTES
from ..retrieval import Hit, Retriever
from ..site import Link, Page
from ..tasks import ProofStep, Task
from .blocks import Block, blocks_to_html, blocks_to_page, link_names
from .offline import OfflineSite, PageCorpus

__all__ = ["ArticleRetriever", "WorldPages", "article_retriever", "tasks_on_site", "world_site"]

_FORMAT = 1  # raise it when a page changes by a byte
_MAX_ARTICLES = 50_000
_LIST_ENTRIES = 100
_MOST_NAMESAKES = 60
_KEPT = 8_192


class _World(Protocol):
    @property
    def corpus(self) -> Corpus: ...


class WorldPages:
    """Writes the pages of a world.

    Args:
        world: Whose articles, facts and names to write from.

    Raises:
        ConfigurationError: The world has more articles than a site should have.
    """

    def __init__(self, world: PhantomWorld | KnowledgeWorld) -> None:
        if len(world.corpus) > _MAX_ARTICLES:
            raise ConfigurationError(
                f"the world has {len(world.corpus)} articles; a site has {_MAX_ARTICLES} at most"
            )
        self.world, self.articles = world, world.corpus
        self.root = f"https://{world.corpus.name}.example/"
        self.home = f"{self.root}Main_Page"
        titles = [document.title for document in self.articles]
        self._titles = dict(zip(self.articles.ids, titles, strict=True))
        self.article_urls = _addresses(self.root, self._titles)
        self._lists = dict(self._every_list())
        self._namesakes = dict(self._every_page_of_namesakes(titles))
        ids = {url: document_id for document_id, url in self.article_urls.items()}
        self._ids = ids
        self.urls = (*ids, self.home, *self._lists, *self._namesakes)
        self.page = lru_cache(_KEPT)(self._page)

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides what the pages hold."""
        return hashlib.sha256(f"{_FORMAT} {self.articles.fingerprint}".encode()).hexdigest()

    def html(self, url: str) -> str:
        """Return a page for a browser."""
        return blocks_to_html(*self._written(url))

    def _page(self, position: int) -> Page:
        url = self.urls[position]
        return blocks_to_page(url, *self._written(url))

    def _written(self, url: str) -> tuple[str, list[Block]]:
        if url in self._ids:
            return self._article(url, self.articles[self._ids[url]])
        if url == self.home:
            title = f"Main page of {self.articles.name}"
            blocks = [Block("heading", (title,)), Block("section", ("Lists",))]
            lists = [Link(other, name) for other, (name, _) in self._lists.items()]
            return title, [*blocks, *(Block("item", (link,)) for link in lists)]
        is_list = url in self._lists
        title, ids = self._lists[url] if is_list else self._namesakes[url]
        blocks = [Block("heading", (title,))]
        if not is_list:
            blocks.append(Block("text", ("The name may stand for any of these articles:",)))
        blocks += [Block("item", (self._link(document_id),)) for document_id in ids]
        return title, [*blocks, self._nav(url)]

    def _article(self, url: str, document: Document) -> tuple[str, list[Block]]:
        links = [self._link(other) for other in document.links]
        blocks = [Block("heading", (document.title,)), *self._infobox(document.id)]
        for text in document.text.replace("\n\n", "\n").split("\n"):
            if text.startswith("## "):
                blocks.append(Block("section", (text[3:],)))
            elif text.strip() and not text.startswith("# "):
                blocks.append(Block("text", link_names(" ".join(text.split()), links)))
        return document.title, [*blocks, self._nav(url)]

    def _nav(self, url: str) -> Block:
        """Return the line of links at the foot of a page; the last leads to no page."""
        history = Link(f"{self.root}History/{url.rpartition('/')[2]}", "History of this page")
        return Block("nav", (Link(self.home, "Main page"), " · ", history))

    def _link(self, document_id: str) -> Link:
        return Link(self.article_urls[document_id], self._titles[document_id])

    def _infobox(self, document_id: str) -> Iterator[Block]:
        for label, values in self._rows(document_id):
            parts: list[str | Link] = []
            for value in values:
                parts += [", ", value] if parts else [value]
            yield Block("row", (label, *parts))

    def _rows(self, document_id: str) -> Iterator[tuple[str, list[str | Link]]]:
        """Give the label and the values of each row of an article's infobox."""
        place = self.articles.position(document_id)
        if isinstance(self.world, PhantomWorld):
            people = self.world.people
            for relation, others in stated_relatives(people, place):
                yield relation, [self._link(self.articles.ids[other]) for other in others]
            for name, attribute in ATTRIBUTES.items():
                yield attribute.name, [people.value(place, name)]
            return
        graph, corpus = self.world.entities, self.world.corpus
        if place >= len(graph):  # a side document
            return
        for stated in corpus.statements(place):
            if stated.attribute is not None:
                yield stated.attribute.noun, [graph.value(place, stated.attribute)]
            elif stated.relation is not None:
                label = stated.relation.label(is_inverse=stated.is_inverse)
                yield label, [self._link(corpus.ids[other]) for other in stated.others]

    def _every_list(self) -> Iterator[tuple[str, tuple[str, list[str]]]]:
        """Give each list's address, title and articles: of one kind, by title."""
        kinds: dict[str, list[str]] = defaultdict(list)
        for place, document_id in enumerate(self.articles.ids):
            kinds[self._kind(place)].append(document_id)
        for kind, ids in kinds.items():
            ids.sort(key=lambda document_id: (self._titles[document_id], document_id))
            parts = range(0, len(ids), _LIST_ENTRIES)
            for number, first in enumerate(parts, start=1):
                url = f"{self.root}List_of_{quote(kind.replace(' ', '_'))}_{number}"
                title = f"List of {kind}, {number} of {len(parts)}"
                yield url, (title, ids[first : first + _LIST_ENTRIES])

    def _kind(self, place: int) -> str:
        if isinstance(self.world, PhantomWorld):
            return "people"
        graph = self.world.entities
        return graph.type_of(place).plural if place < len(graph) else "superseded entries"

    def _every_page_of_namesakes(
        self, titles: Sequence[str]
    ) -> Iterator[tuple[str, tuple[str, list[str]]]]:
        """Give the page of each last word that several titles share."""
        sharing: dict[str, list[str]] = defaultdict(list)
        for document_id, title in zip(self.articles.ids, titles, strict=True):
            words = title.split()
            if len(words) > 1 and not title.endswith(")"):
                sharing[words[-1]].append(document_id)
        for word, ids in sorted(sharing.items()):
            if 2 <= len(ids) <= _MOST_NAMESAKES:
                url = f"{self.root}{quote(word)}_(namesakes)"
                yield url, (f"{word} (namesakes)", ids)


class ArticleRetriever:
    """A site's search as a retriever of the world's own documents, for drawing tasks.

    Args:
        site: What is searched.
        ids: The article at each address.
    """

    def __init__(self, site: OfflineSite, ids: dict[str, str]) -> None:
        self._site, self._ids = site, ids

    @property
    def name(self) -> str:
        """The name of the site's own retriever."""
        return self._site.retriever.name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return for each query the hits among the top k that are articles."""
        rankings = self._site.retriever.search(queries, k)
        return [
            [
                Hit(self._ids[hit.document_id], hit.score)
                for hit in hits
                if hit.document_id in self._ids
            ]
            for hits in rankings
        ]


def world_site(pages: WorldPages, again: object = None) -> OfflineSite:
    """Return the site of a world's pages."""
    corpus = PageCorpus(
        pages.urls,
        pages.page,
        name=f"{pages.articles.name}-site",
        fingerprint=pages.fingerprint,
        again=again,  # type: ignore[arg-type]
    )
    return OfflineSite(corpus, home=pages.home, html=pages.html)


def article_retriever(pages: WorldPages, site: OfflineSite) -> Retriever:
    """Return the site's search as a retriever of the world's articles."""
    ids = {url: document_id for document_id, url in pages.article_urls.items()}
    return ArticleRetriever(site, ids)


def tasks_on_site(pages: WorldPages, tasks: Sequence[Task]) -> list[Task]:
    """Return a world's tasks with addresses in the place of its documents' ids."""
    urls = pages.article_urls
    return [
        replace(
            task,
            evidence=tuple(urls[document] for document in task.evidence),
            proof=tuple(
                ProofStep(step.query, urls[step.document], step.fact) for step in task.proof
            ),
        )
        for task in tasks
    ]


def _addresses(root: str, titles: dict[str, str]) -> dict[str, str]:
    """Return an address for each document: its title, and its id too where titles are equal."""
    taken: set[str] = set()
    urls = {}
    for document_id, title in titles.items():
        url = root + quote(title.replace(" ", "_"))
        if url in taken:
            url += f"_({document_id})"
        taken.add(url)
        urls[document_id] = url
    return urls
