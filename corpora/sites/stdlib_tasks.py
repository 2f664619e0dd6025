"""Questions about the standard library, from introspection, each checked against the pages.

A class is named, or described by a module and a method that no other class there defines. A
module is named, or is that of a class's direct base. So facts are joined from page to page:
"the class that defines Y in the module that defines the direct base class of X".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from ..certificates import certify, find_leaks
from ..errors import ConfigurationError
from ..site import Page
from ..tasks import ProofStep, Task, TaskSet
from .offline import PAGE_SIZE
from .stdlib import Library, load_library, stdlib_site

__all__ = ["stdlib_tasks"]

_MAX_HOPS = 4
_MOST_DRAWS = 2_500  # of a cell
_MOST_OF_AN_ANSWER = 12  # tasks of one end that share an answer
_AT_ONCE = 64
_OBJECT = "builtins.object"
_WORD = re.compile(r"\w+")
_Option = TypeVar("_Option")
_ENDS = ("base", "class", "module", "method", "function")


@dataclass(frozen=True, slots=True)
class _Known:
    """A class or a module, the words that lead to it, and what was read on the way.

    Attributes:
        name: Qualified.
        words: How the question speaks of it.
        hops: Facts that were joined to know it.
        steps: What was read: query, page, and facts as they stand there.
    """

    name: str
    words: str
    hops: int = 0
    steps: tuple[tuple[str, str, str], ...] = ()


class _Facts:
    """What can be asked for, with the lines of the pages that state it."""

    def __init__(self, library: Library) -> None:
        self.library = library
        definers: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, found in sorted(library.classes.items()):
            for own in found["own"]:
                definers[_module(name), own].append(name)
        pages = {page.url: page for page in library.pages}
        self._lines: dict[str, dict[str, list[str]]] = {}  # of a page, by what stands before "("
        for name in [*library.classes, *{_module(name) for name in library.functions}]:
            self._lines[name] = _signatures(pages[library.url(name)])
        self.classes = [name for name in sorted(library.classes) if "._" not in f".{name}"]
        self.crossing = [
            name
            for name in self.classes
            if (base := self.base(name)) is not None and _module(base[0]) != _module(name)
        ]
        crossing = set(self.crossing)
        # for each module what describes its classes: class, method, line; and of those the ones
        # whose base is in another module
        self.described: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        self.described_crossing: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        for (module, method), names in sorted(definers.items()):
            line = self.line(names[0], method)
            if len(names) > 1 or method.startswith("_") or line is None:
                continue
            self.described[module].append((names[0], method, line))
            if names[0] in crossing:
                self.described_crossing[module].append((names[0], method, line))
        self.defaults: dict[str, list[tuple[str, str, str, str]]] = {}
        for name, found in sorted(library.classes.items()):
            self.defaults[name] = self._defaults(name, found["methods"])
        functions: dict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
        for name, given in sorted(library.functions.items()):
            functions[_module(name)][name.rpartition(".")[2]] = given
        self.function_defaults = {m: self._defaults(m, table) for m, table in functions.items()}

    def base(self, name: str) -> tuple[str, str] | None:
        """Return a class's only direct base, and the line that states it; None without."""
        bases = self.library.classes[name]["bases"]
        if len(bases) != 1 or bases[0] in (_OBJECT, name) or bases[0] not in self.library.classes:
            return None
        base, short = bases[0], name.rpartition(".")[2]
        shown = base.rpartition(".")[2] if _module(base) == _module(name) else base
        line = f"class {short}({shown})"
        return (base, line) if line in self._lines[name].get(f"class {short}", ()) else None

    def line(self, page: str, name: str) -> str | None:
        """Return the line of a page that shows a method or function, if there is one alone."""
        found = self._lines[page].get(name, [])
        return found[0] if len(found) == 1 else None

    def _defaults(
        self, page: str, table: Mapping[str, Mapping[str, str]]
    ) -> list[tuple[str, str, str, str]]:
        """Return what can be asked about defaults: name, parameter, value and line."""
        found = []
        for name, given in sorted(table.items()):
            line = self.line(page, name)
            for parameter, value in sorted(given.items()):
                if line and f"{parameter}={value}" in line and _WORD.search(value):
                    found.append((name, parameter, value, line))
        return found


class _Drawer:
    """Draws questions; each draw gives one, or None where it came to no end."""

    def __init__(self, facts: _Facts, generator: np.random.Generator) -> None:
        self.facts = facts
        self._random = generator

    def draw(self, end: str, hops: int) -> Task | None:
        """Return a task with such an end and so many facts to join."""
        if end == "base":
            return self._base_task(hops)
        if end in ("method", "function"):
            known = self._class(hops - 1) if end == "method" else self._module(hops - 1)
            return None if known is None else self._default_task(end, known)
        known = self._module(hops) if end == "module" else self._described(hops)
        if known is None:
            return None
        answers = (known.name,) if end == "module" else _names(known.name)
        return self._task(end, known, f"Which is {known.words}?", answers)

    def _base_task(self, hops: int) -> Task | None:
        read = self._with_base(self._class(hops - 1))
        if read is None:
            return None
        known, base = read
        question = f"Which is the direct base class of {known.words}?"
        return self._task("base", known, question, _names(base))

    def _default_task(self, end: str, known: _Known) -> Task | None:
        table = self.facts.defaults if end == "method" else self.facts.function_defaults
        chosen = self._pick(table.get(known.name, ()))
        if chosen is None:
            return None
        name, parameter, value, line = chosen
        known = self._read(known, known.name, line, query=f"{known.name} {name} {parameter}")
        question = (
            f"What is the default of the parameter {parameter} of the {end} {name} "
            f"of {known.words}?"
        )
        return self._task(end, known, question, tuple(dict.fromkeys((value.strip("'\""), value))))

    def _class(self, hops: int, *, crossing: bool = False) -> _Known | None:
        """Return a class that takes so many facts to know: 0 to name it."""
        if hops > 0:
            return self._described(hops, crossing=crossing)
        name = self._pick(self.facts.crossing if crossing else self.facts.classes)
        return None if name is None else _Known(name, f"the class {name}")

    def _described(self, hops: int, *, crossing: bool = False) -> _Known | None:
        """Return a class that a method describes, in a module that takes one fact less."""
        table = self.facts.described_crossing if crossing else self.facts.described
        module = self._named_module(sorted(table)) if hops == 1 else self._module(hops - 1)
        chosen = None if module is None else self._pick(table.get(module.name, ()))
        if module is None or chosen is None:
            return None
        name, method, line = chosen
        words = f"the class that defines {method} in {module.words}"
        known = replace(module, name=name, words=words)
        return self._read(known, name, line, query=f"{module.name} {method}")

    def _module(self, hops: int) -> _Known | None:
        """Return a module that takes so many facts to know: that of a class's direct base."""
        if hops == 0:
            return self._named_module(sorted(self.facts.function_defaults))
        read = self._with_base(self._class(hops - 1, crossing=True))
        if read is None:
            return None
        known, base = read
        words = f"the module that defines the direct base class of {known.words}"
        return replace(known, name=_module(base), words=words)

    def _named_module(self, names: Sequence[str]) -> _Known | None:
        name = self._pick(names)
        return None if name is None else _Known(name, f"the module {name}")

    def _with_base(self, known: _Known | None) -> tuple[_Known, str] | None:
        """Return a class whose page was read for its base, and the base."""
        found = None if known is None else self.facts.base(known.name)
        if known is None or found is None:
            return None
        return self._read(known, known.name, found[1], query=known.name), found[0]

    def _read(self, known: _Known, page: str, line: str, *, query: str) -> _Known:
        """Add a fact: to the step that reads the same page, or as a step of its own."""
        steps = list(known.steps)
        if steps and steps[-1][1] == page:
            before = steps[-1]
            steps[-1] = (before[0], page, f"{before[2]}\n{line}")
        else:
            steps.append((query, page, line))
        return replace(known, hops=known.hops + 1, steps=tuple(steps))

    def _task(
        self, end: str, known: _Known, question: str, answers: tuple[str, ...]
    ) -> Task | None:
        """Return the task, unless its answer stands in its question or a page is read twice."""
        pages = [page for _, page, _ in known.steps]
        said = {word.lower() for word in _WORD.findall(question)}
        is_said = any(set(_WORD.findall(answer.lower())) <= said for answer in answers)
        if is_said or len(set(pages)) < len(pages) or (known.hops > 1 and len(pages) < 2):
            return None
        url = self.facts.library.url
        proof = tuple(ProofStep(query, url(page), line) for query, page, line in known.steps)
        evidence = tuple(step.document for step in proof)
        return Task("", question, answers, evidence, known.hops, end, proof)

    def _pick(self, options: Sequence[_Option]) -> _Option | None:
        return options[int(self._random.integers(len(options)))] if options else None


@lru_cache(maxsize=8)
def stdlib_tasks(count: int, seed: int = 0) -> TaskSet:
    """Draw tasks evenly over their ends and 1 to 4 hops; ids name the interpreter's version.

    Every proof is played by the site's own search, and no question of two hops or more finds
    its last page when it is searched word for word.

    Raises:
        ConfigurationError: The library holds fewer.
    """
    library, retriever = load_library(), stdlib_site().retriever
    facts = _Facts(library)
    cells = [(end, hops) for hops in range(1, _MAX_HOPS + 1) for end in _ENDS]
    share, seen = count // _MAX_HOPS + 1, set[str]()
    found: dict[tuple[str, int], list[Task]] = {}
    answers: Counter[tuple[str, str]] = Counter()
    for place, (end, hops) in enumerate(cells):
        generator = np.random.default_rng(np.random.SeedSequence([seed, place]))
        candidates = _candidates(_Drawer(facts, generator), end, hops, seen)
        kept: list[Task] = []
        found[end, hops] = kept
        while len(kept) < share and (block := list(islice(candidates, _AT_ONCE))):
            proved = certify(block, retriever, PAGE_SIZE)
            leaks = find_leaks(block, retriever, PAGE_SIZE)
            for task, is_proved, is_leak in zip(block, proved, leaks, strict=True):
                is_rare = answers[end, task.answers[0]] < _MOST_OF_AN_ANSWER
                if is_proved and is_rare and not (is_leak and hops > 1):
                    answers[end, task.answers[0]] += 1
                    kept.append(task)
    chosen = _evenly(found, count)
    if len(chosen) < count:
        raise ConfigurationError(
            f"questions={count}: the standard library of Python {library.version} gives "
            f"{len(chosen)}; ask for fewer"
        )
    return TaskSet(
        (
            replace(task, id=f"pydoc-{library.version}-{task.hops}h-{task.kind}-{number}")
            for number, task in enumerate(chosen)
        ),
        name=f"pydoc-{library.version}-tasks",
    )


def _candidates(drawer: _Drawer, end: str, hops: int, seen: set[str]) -> Iterator[Task]:
    for _ in range(_MOST_DRAWS):
        task = drawer.draw(end, hops)
        if task is not None and task.question not in seen:
            seen.add(task.question)
            yield task


def _evenly(found: dict[tuple[str, int], list[Task]], count: int) -> list[Task]:
    """Take tasks by turns: of each number of hops, and within it of each end."""
    by_hops: dict[int, list[tuple[int, Task]]] = defaultdict(list)
    for (_, hops), tasks in found.items():
        by_hops[hops] += enumerate(tasks)
    rows = [sorted(ranked, key=lambda pair: pair[0]) for ranked in by_hops.values()]
    turns = [(row, task) for ranked in rows for row, (_, task) in enumerate(ranked)]
    return [task for _, task in sorted(turns, key=lambda pair: pair[0])][:count]


def _names(qualified: str) -> tuple[str, ...]:
    """Return the ways to name a class: alone, and with its module."""
    return (qualified.rpartition(".")[2], qualified)


def _module(qualified: str) -> str:
    return qualified.rpartition(".")[0]


def _signatures(page: Page) -> dict[str, list[str]]:
    """Return the lines of a page that hold a bracket, by what stands before it."""
    found: dict[str, list[str]] = defaultdict(list)
    for paragraph in page.paragraphs:
        for line in paragraph.split("\n"):
            name, bracket, _ = line.partition("(")
            if bracket:
                found[name].append(line)
    return found
