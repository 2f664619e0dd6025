"""A folder of HTML files, or a WARC file, as a site: a person's own pages, or an archived crawl.

Where no tasks lie beside the pages, they are made from the links: "What is the title of the page
to which the link 'x' of the page 'A' leads?"
"""

import hashlib
import logging
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import numpy as np

from ..certificates import certify
from ..errors import ConfigurationError, CorpusError, MissingExtraError
from ..pages import page_from_html
from ..site import Link, Page
from ..tasks import ProofStep, Task, TaskSet
from .offline import PAGE_SIZE, OfflineSite, PageCorpus

__all__ = ["folder_site", "folder_tasks", "is_archive"]

_SUFFIXES = frozenset((".html", ".htm", ".xhtml"))
_ARCHIVES = (".warc", ".warc.gz")
_MAX_PAGE_BYTES = 20_000_000
_MAX_LINKS = 3  # followed by a task
_AT_ONCE = 64
_DRAWS = 20_000
_WORD = re.compile(r"\w+")
_logger = logging.getLogger("seekgym")


def is_archive(path: str) -> bool:
    """Tell whether a path is named like a WARC file."""
    return path.endswith(_ARCHIVES)


@lru_cache(maxsize=8)
def folder_site(path: str) -> OfflineSite:
    """Return the site of the HTML files of a folder, or of the pages of a WARC file.

    A file's address is its path under the folder. A link that leaves the folder is dead, and a
    file outside it, to which a symbolic link leads, is no page.

    Raises:
        CorpusError: There is no page, or the file cannot be read.
        MissingExtraError: A WARC file is given, and its reader is not installed.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", Path(path).name.lower()).strip("-") or "folder"
    read = _archived(path) if is_archive(path) else _files(path, f"https://{slug}.example/")
    html: dict[str, tuple[bytes, str | None]] = {}
    for url, content, charset in read:
        if len(content) > _MAX_PAGE_BYTES:
            _logger.warning("%s: left out, it has %d bytes", url, len(content))
        else:
            html.setdefault(url, (content, charset))
    if not html:
        raise CorpusError(f"{path}: no HTML page; it needs files that end in .html or .htm")
    return _site(path, slug, html)


def _site(path: str, slug: str, html: Mapping[str, tuple[bytes, str | None]]) -> OfflineSite:
    digest = hashlib.sha256()
    pages = []
    for url, (content, charset) in html.items():
        digest.update(f"{url} {charset} {len(content)}\n".encode() + content)
        pages.append(page_from_html(content, url, charset))
    corpus = PageCorpus(
        tuple(html),
        tuple(pages).__getitem__,
        name=slug,
        fingerprint=digest.hexdigest(),
        again=partial(folder_site, path),
    )
    index = [url for url in html if url.endswith(("/index.html", "/index.htm"))]
    home = min(index or html, key=lambda url: (url.count("/"), url))
    return OfflineSite(corpus, home=home, html=partial(_source, html))


def _source(html: Mapping[str, tuple[bytes, str | None]], url: str) -> str:
    content, charset = html[url]
    return content.decode(charset or "utf-8", "replace")


def _files(path: str, root: str) -> Iterator[tuple[str, bytes, str | None]]:
    folder = Path(path).resolve()
    found = sorted(
        Path(where) / name
        for where, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix.lower() in _SUFFIXES
    )
    for file in found:
        if not file.resolve().is_relative_to(folder):
            continue
        try:
            content = file.read_bytes()
        except OSError as error:
            raise CorpusError(f"{file}: cannot be read ({error})") from None
        name = os.fsencode(file.relative_to(folder))
        yield root + quote(name.replace(os.sep.encode(), b"/")), content, None


def _archived(path: str) -> Iterator[tuple[str, bytes, str | None]]:
    """Give the pages of a WARC file: answers with status 200 whose content is HTML."""
    try:
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError:
        raise MissingExtraError("fastwarc", "web") from None
    try:
        with open(path, "rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response):
                url = (record.headers.get("WARC-Target-URI") or "").strip("<>").partition("#")[0]
                head = record.http_headers
                if head is None or head.status_code != 200 or not url:
                    continue
                kind = (record.http_content_type or "").lower()
                if kind in ("text/html", "application/xhtml+xml"):
                    coding = (head.get("Content-Encoding") or "").lower()
                    content = _decompressed(record.reader.read(), coding)
                    if content is not None:
                        yield url, content, record.http_charset
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from None


def _decompressed(content: bytes, coding: str) -> bytes | None:
    """Return a body without its compression, up to just over the largest page; None if it fails."""
    if coding in ("", "identity"):
        return content
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        return zlib.decompressobj(wbits=47).decompress(content, _MAX_PAGE_BYTES + 1)
    except zlib.error:
        return None


def folder_tasks(site: OfflineSite, questions: int) -> TaskSet:
    """Draw tasks from the links of a site: at most three to follow, one answer each.

    Raises:
        ConfigurationError: No page links to another in a way that can be asked about.
    """
    generator = np.random.default_rng(np.random.SeedSequence([0, 0]))
    candidates = _candidates(site, generator)
    kept: list[Task] = []
    while len(kept) < questions and (block := list(islice(candidates, _AT_ONCE))):
        proved = certify(block, site.retriever, PAGE_SIZE)
        kept += [task for task, is_proved in zip(block, proved, strict=True) if is_proved]
    if not kept:
        raise ConfigurationError(
            f"site {site.corpus.name!r}: its links give no task; pass tasks= with your own"
        )
    return TaskSet(kept[:questions], name=f"{site.corpus.name}-links")


def _candidates(site: OfflineSite, generator: np.random.Generator) -> Iterator[Task]:
    titles = Counter(document.title for document in site.corpus)
    seen: set[str] = set()
    for number in range(_DRAWS):
        length = 1 + number % _MAX_LINKS
        start = site.corpus.ids[int(generator.integers(len(site.corpus)))]
        task = _draw(site, generator, start, length, titles)
        if task is not None and task.id not in seen:
            seen.add(task.id)
            yield task


def _draw(
    site: OfflineSite,
    generator: np.random.Generator,
    start: str,
    length: int,
    titles: Mapping[str, int],
) -> Task | None:
    """Follow links at random from a page; None where a name on the way is not unique."""
    page = site.corpus.page(start)
    words, steps, urls = f"the page {page.title!r}", [], [start]
    if titles[page.title] > 1:
        return None
    query = page.title
    for _ in range(length):
        links = _askable(site, page, titles, urls)
        if not links:
            return None
        link = links[int(generator.integers(len(links)))]
        words = f"the page to which the link {link.text!r} of {words} leads"
        steps.append(ProofStep(query, page.url, page.paragraphs[link.paragraph]))
        query, page = "", site.open(link.url)
        urls.append(page.url)
    steps.append(ProofStep("", page.url, ""))
    question = f"What is the title of {words}?"
    if _is_said(page.title, question):
        return None
    digest = hashlib.sha256("\n".join([question, *urls]).encode()).hexdigest()[:12]
    return Task(
        f"links-{length}-{digest}",
        question,
        (page.title,),
        tuple(urls),
        length,
        "links",
        tuple(steps),
    )


def _askable(
    site: OfflineSite, page: Page, titles: Mapping[str, int], urls: Sequence[str]
) -> list[Link]:
    """Return the links to other pages whose text no other link of the page has."""
    texts = Counter(link.text for link in page.links)
    found = []
    for link in page.links:
        target = site.address(link.url)
        if (
            target == link.url
            and target not in urls
            and texts[link.text] == 1
            and _WORD.search(link.text)
            and titles[site.corpus.page(target).title] == 1
        ):
            found.append(link)
    return found


def _is_said(answer: str, question: str) -> bool:
    return set(_WORD.findall(answer.lower())) <= set(_WORD.findall(question.lower()))
