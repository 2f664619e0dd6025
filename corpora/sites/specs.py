"""From what a person writes, such as ``knowledge:entities=600,seed=1``, to a site with tasks."""

import ast
import inspect
import os
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..errors import ConfigurationError, raise_unknown
from ..knowledge import KnowledgeWorld
from ..knowledge import QuestionSettings as KnowledgeSettings
from ..phantom import PhantomWorld
from ..phantom import QuestionSettings as PhantomSettings
from ..tasks import TaskSet
from .folder import folder_site, folder_tasks, is_archive
from .offline import PAGE_SIZE, OfflineSite
from .stdlib import stdlib_site
from .stdlib_tasks import stdlib_tasks
from .worlds import WorldPages, article_retriever, tasks_on_site, world_site

__all__ = ["SITES", "SiteWithTasks", "load_site", "open_site"]

_MAX_DOCUMENTS = 11  # of a proof, so that it fits the turns
SITES = ("pydoc", "knowledge", "phantom")


class SiteWithTasks(NamedTuple):
    """A site, and the questions that can be answered from it."""

    site: OfflineSite
    tasks: TaskSet


@lru_cache(maxsize=16)
def open_site(spec: str, questions: int = 500) -> SiteWithTasks:
    """Return a site with tasks; the latest are kept, so that environments share them.

    Args:
        spec: ``pydoc``; ``knowledge:entities=600,seed=1`` or ``phantom:people=50,seed=1``, with
            the arguments of the worlds and of their questions; or the path of a folder of HTML
            files, of a ``.warc`` or of a ``.warc.gz`` file.
        questions: How many tasks are drawn.

    Raises:
        ConfigurationError: There is no such site, or an argument is unknown or out of range.
        CorpusError: A file cannot be used.
    """
    name, arguments = _parsed(spec)
    seed = arguments.get("seed", 0)
    if name == "pydoc":
        _refuse(spec, arguments, ("seed",))
        return SiteWithTasks(stdlib_site(), stdlib_tasks(questions, seed))
    if name == "path":
        site = folder_site(spec)
        return SiteWithTasks(site, folder_tasks(site, questions))
    make = _knowledge if name == "knowledge" else _phantom
    try:
        return make(spec, questions, **arguments)
    except TypeError as error:
        raise ConfigurationError(f"site {spec!r}: {_plain(error, name)}") from None


def load_site(spec: str) -> OfflineSite:
    """Return a site without its tasks, as it is opened again by pickles."""
    name, arguments = _parsed(spec)
    if name == "pydoc":
        return stdlib_site()
    if name == "path":
        return folder_site(spec)
    try:
        return _world(spec, name, **arguments)[1]
    except TypeError as error:
        raise ConfigurationError(f"site {spec!r}: {_plain(error, name)}") from None


def _plain(error: TypeError, name: str) -> str:
    """Return what is wrong with an argument, and which ones a world and its questions take."""
    make, world = (_knowledge, KnowledgeWorld) if name == "knowledge" else (_phantom, PhantomWorld)
    known = {*inspect.signature(make).parameters, *inspect.signature(world).parameters}
    known -= {"spec", "questions", "world", "world_seed"}  # a seed is written ``seed``
    fault = str(error).partition("() ")[2] or error
    return f"{fault}; a world takes {', '.join(sorted(known))}"


def _knowledge(
    spec: str,
    questions: int,
    *,
    seed: int = 0,
    kinds: Any = ("chain", "conjunction"),
    hops: Any = (2, 4),
    constraints: Any = (2, 3),
    obfuscation: float = 0.0,
    **world: Any,
) -> SiteWithTasks:
    pages, site = _world(spec, "knowledge", seed=seed, **world)
    assert isinstance(pages.world, KnowledgeWorld)
    drawn = pages.world.tasks(
        questions,
        seed=seed,
        settings=KnowledgeSettings(kinds, hops, constraints, obfuscation),
        retriever=article_retriever(pages, site),
        top_k=PAGE_SIZE,
    )
    return SiteWithTasks(site, TaskSet(tasks_on_site(pages, drawn), name=drawn.name))


def _phantom(
    spec: str,
    questions: int,
    *,
    seed: int = 0,
    hops: Any = (1, 6),
    constraints: Any = (0, 0),
    kinds: Any = ("chain", "attribute"),
    relations: Any = "all",
    semantics: Any = "definite",
    **world: Any,
) -> SiteWithTasks:
    pages, site = _world(spec, "phantom", seed=seed, **world)
    assert isinstance(pages.world, PhantomWorld)
    settings = PhantomSettings(
        hops, constraints, kinds, relations, semantics, documents=_MAX_DOCUMENTS
    )
    drawn = pages.world.tasks(
        questions,
        seed=seed,
        settings=settings,
        retriever=article_retriever(pages, site),
        top_k=PAGE_SIZE,
    )
    return SiteWithTasks(site, TaskSet(tasks_on_site(pages, drawn), name=drawn.name))


_QUESTION_ARGUMENTS = frozenset("kinds hops constraints obfuscation relations semantics".split())


def _world(spec: str, name: str, **arguments: Any) -> tuple[WorldPages, OfflineSite]:
    """Return the pages and the site of a world, made once for each spec."""
    drawn_from = tuple(
        sorted((key, value) for key, value in arguments.items() if key not in _QUESTION_ARGUMENTS)
    )
    return _made_world(spec, name, drawn_from)


@lru_cache(maxsize=8)
def _made_world(
    spec: str, name: str, arguments: tuple[tuple[str, Any], ...]
) -> tuple[WorldPages, OfflineSite]:
    given = dict(arguments)
    seed = given.pop("seed", 0)
    world: PhantomWorld | KnowledgeWorld
    if name == "knowledge":
        world = KnowledgeWorld(world_seed=seed, **{"coverage": "either", **given})
    else:
        world = PhantomWorld(world_seed=seed, **{"people": 1_000, **given})
    pages = WorldPages(world)
    return pages, world_site(pages, partial(load_site, spec))


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """Return what kind of site is meant, and its arguments."""
    name, colon, text = spec.partition(":")
    if name not in SITES or (not colon and os.path.exists(spec)):
        if os.path.isdir(spec) or (is_archive(spec) and os.path.isfile(spec)):
            return "path", {}
        if os.sep in spec or "." in spec:
            raise ConfigurationError(
                f"site {spec!r}: no such folder and no such .warc or .warc.gz file"
            )
        raise_unknown("site", name, (*SITES, "live", "the path of a folder or a WARC file"))
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        arguments = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError):
        raise ConfigurationError(
            f"site {spec!r}: after '{name}:' come arguments like people=50,seed=7"
        ) from None
    if "world_seed" in arguments:
        arguments["seed"] = arguments.pop("world_seed")
    return name, arguments


def _refuse(spec: str, arguments: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in arguments:
        if name not in known:
            raise_unknown(f"argument of site {spec!r}", name, known)
