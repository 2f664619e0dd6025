import importlib
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

from seekgym.corpora import ConfigurationError
from seekgym.corpora.sites import open_site
from seekgym.corpora.sites.stdlib import _PROGRAM, load_library
from seekgym.envs.citations import is_stated


@pytest.fixture(scope="module")
def opened():
    return open_site("pydoc", 500)


def resolved(name):
    """Import a class or module by its qualified name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def test_there_are_five_hundred_tasks_of_one_to_four_hops(opened):
    tasks = opened.tasks
    assert len(tasks) == 500
    for hops in range(1, 5):
        assert sum(task.hops == hops for task in tasks) >= 75
    assert {task.kind for task in tasks} == {"base", "class", "module", "method", "function"}
    version = ".".join(map(str, sys.version_info[:3]))
    assert all(task.id.startswith(f"pydoc-{version}-{task.hops}h-") for task in tasks)
    assert len({task.question for task in tasks}) == 500


def test_every_fact_stands_in_the_text_of_its_page(opened):
    for task in opened.tasks:
        assert task.evidence == tuple(step.document for step in task.proof)
        for step in task.proof:
            text = opened.site.corpus[step.document].text
            for line in step.fact.split("\n"):
                assert is_stated(line, text), (task.id, line)
        assert sum(step.fact.count("\n") + 1 for step in task.proof) == task.hops


NAMED = r"(?:the class ([\w.]+)|the class that defines (\w+) in (.+))"


def a_class(words):
    """Find the class that words of a question stand for, by introspection alone."""
    name, method, module = re.fullmatch(NAMED, words).groups()
    if name:
        return resolved(name)
    scope = a_module(module)
    pages = load_library().classes
    found = [
        value
        for value in vars(scope).values()
        if inspect.isclass(value)
        and value.__module__ == scope.__name__
        and f"{scope.__name__}.{value.__qualname__}" in pages
        and method in vars(value)
    ]
    unique = {id(value): value for value in found}
    assert len(unique) == 1, words
    return found[0]


def a_module(words):
    if match := re.fullmatch(r"the module that defines the direct base class of (.+)", words):
        return importlib.import_module(a_class(match[1]).__bases__[0].__module__)
    return importlib.import_module(re.fullmatch(r"the module ([\w.]+)", words)[1])


def answer(question):
    """Answer a question by introspection."""
    words = question.removesuffix("?")
    if match := re.fullmatch(r"Which is the direct base class of (.+)", words):
        (base,) = a_class(match[1]).__bases__
        return base.__qualname__
    if match := re.fullmatch(r"Which is (the module .+)", words):
        return a_module(match[1]).__name__
    if match := re.fullmatch(r"Which is (the class .+)", words):
        return a_class(match[1]).__qualname__
    pattern = r"What is the default of the parameter (\w+) of the (method|function) (\w+) of (.+)"
    parameter, kind, name, owner = re.fullmatch(pattern, words).groups()
    scope = a_class(owner) if kind == "method" else a_module(owner)
    return str(inspect.signature(vars(scope)[name]).parameters[parameter].default)


def test_introspection_gives_the_same_answers(opened):
    wrong = [task.id for task in opened.tasks if answer(task.question) not in task.answers]
    assert wrong == []


def test_no_machine_shows_through():
    library = load_library()
    text = "".join(library.html.values())
    assert not re.search(r"\bat(?:&nbsp;| )0x", text)
    for path in {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.getcwd()}:
        assert path not in text


def test_links_lead_to_pages_and_some_are_dead(opened):
    alive = dead = 0
    for document in opened.site.corpus:
        for link in document.links:
            alive += link in opened.site.corpus
            dead += link not in opened.site.corpus
    assert alive > 5_000
    assert 0 < dead < alive / 4


def test_another_process_writes_the_same_bytes():
    """Whatever the hash seed and the surroundings of the caller."""
    command = [sys.executable, "-s", "-S", "-P", os.fspath(_PROGRAM)]
    environment = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    library = load_library()
    assert [page[0] for page in found["pages"]] == [
        page.url.rpartition("/")[2].removesuffix(".html") for page in library.pages
    ]
    for name, _, html in found["pages"]:
        assert library.html[library.url(name)].endswith(f"{html}</main>")


def test_too_many_questions_are_refused():
    with pytest.raises(ConfigurationError, match="ask for fewer"):
        open_site("pydoc", 100_000)


def test_seeds_give_other_tasks(opened):
    other = open_site("pydoc:seed=1", 500).tasks
    assert {task.question for task in other} != {task.question for task in opened.tasks}
