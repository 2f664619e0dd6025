"""Pages that give a task away are hidden, and others are not."""

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekgym.corpora import ConfigurationError, Task
from seekgym.corpora.errors import PageError
from seekgym.corpora.live import LeakFinder, LeakGuard, LeakRules, TaskSecrets
from seekgym.corpora.site import Page, Result

QUESTION = "Which brother of the Danish painter of the tall blue tower was born in Ribe?"
TASK = Task("t1", QUESTION, ("Anders Møller", "A. Møller"))
LONG = " ".join(f"word{n}" for n in range(20))


class Pages:
    """A site of given texts."""

    name = "pages"

    def __init__(self, pages):
        self.pages = pages

    def search(self, query, page=1):
        return tuple(Result(url, url[-5:], text[:300]) for url, text in self.pages.items())

    def open(self, url):
        if url not in self.pages:
            raise PageError("not_found", "There is no page.")
        return Page(url, "Title", tuple(self.pages[url].split("\n")))


def rule_of(text, rules=None, secrets=None):
    leak = LeakFinder(rules or LeakRules(), [secrets] if secrets else []).in_text(text)
    return leak and leak.rule


SECRETS = TaskSecrets("t1", QUESTION, TASK.answers, (LONG, "short text"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"Q: {QUESTION.upper()} A: ...", "question"),
        (QUESTION.lower().replace(" of the", " — of the,\n").strip("?"), "question"),
        (QUESTION.replace("painter", "pa\u0301inter"), "question"),
        ("painter of the tall blue tower was born: Anders Moller", "question and answer"),
        ("painter of the tall blue tower was born: anders\n  MØLLER.", None),
        ("painter of the tall blue tower was born: Anders Mo\u0308ller", "question and answer"),
        ("painter of the tall blue tower was born. Anders", None),
        ("of the tall blue tower was born. Anders Møller", None),
        ("Anders Møller was born in Ribe; his brother was a Danish painter.", None),
        (" ".join(LONG.split()[3:16]), "13 words"),
        (" ".join(LONG.split()[3:15]), None),
        ("a Short-Text here", "13 words"),
        ("a shorttext here", None),
        ("", None),
    ],
)  # fmt: skip
def test_texts(text, rule):
    answers = ("Anders Moller",) if "Møller" not in text and "MØLLER" not in text else ("B C",)
    if rule == "question and answer":
        answers = ("Anders Moller",)
    secrets = TaskSecrets("t1", QUESTION, answers, SECRETS.forbidden)
    assert rule_of(text, secrets=secrets) == rule


@pytest.mark.parametrize(
    ("answer", "text", "is_leak"),
    [("1", "in 21 parts", False), ("21", "in 21 parts", True), ("Møller", "by MØLLER", True),
     ("东京", "in 东京 now", True), ("", "anything", False), ("!!!", "anything", False)],
)  # fmt: skip
def test_answers_go_by_whole_words(answer, text, is_leak):
    asked = "painter of the tall blue tower was born "
    secrets = TaskSecrets("t1", QUESTION, (answer,))
    assert (rule_of(asked + text, secrets=secrets) is not None) is is_leak


def test_a_short_question_alone_is_no_leak():
    secrets = TaskSecrets("t", "Who was he?", ("Otto",))
    assert rule_of("And who was he? Nobody knows.", secrets=secrets) is None
    assert rule_of("And who was he? Otto.", secrets=secrets) == "question and answer"


@pytest.mark.parametrize("canary", ["CANARY guid 26b5c67b", "canary GUID 26B5C67B"])
def test_canaries(canary):
    rules = LeakRules(canaries=(canary,))
    assert rule_of("x BENCHMARK canary guid 26b5c67b-86ca y", rules) == "canary"
    assert rule_of("x canary guid 26b5c67", rules) is None


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://bad.example/", "domain"),
        ("https://BAD.example./x", "domain"),
        ("http://deep.in.bad.example:8080/x", "domain"),
        ("http://notbad.example/", None),
        ("http://bad.example.org/", None),
        ("http://good.example/datasets/x", "pattern"),
        ("http://good.example/data", None),
        ("http://[::1", None),
        ("nonsense", None),
    ],
)
def test_addresses(url, rule):
    finder = LeakFinder(LeakRules(domains=("bad.example",), patterns=(r"/datasets/",)))
    leak = finder.in_address(url)
    assert (leak and leak.rule) == rule


def test_the_guard_hides_and_tells():
    site = Pages(
        {
            "http://a.example/1": "All is well here.",
            "http://a.example/2": f"The answer to: {QUESTION}",
            "http://b.example/3": "Elsewhere.",
        }
    )
    guard = LeakGuard(site, LeakRules(domains=("b.example",)), tasks=[TASK])
    assert [result.url for result in guard.search("x", 1)] == ["http://a.example/1"]
    assert guard.open("http://a.example/1").paragraphs == ("All is well here.",)
    for url in ("http://a.example/2", "http://b.example/3", "http://b.example/not-there"):
        with pytest.raises(PageError, match="not available") as error:
            guard.open(url)
        assert error.value.code == "hidden"
    with pytest.raises(PageError) as error:
        guard.open("http://a.example/4")
    assert error.value.code == "not_found"
    assert [(h.url[-1], h.rule, h.task_id) for h in guard.hidden] == [
        ("2", "question", "t1"),
        ("3", "domain", ""),
        ("e", "domain", ""),
    ]


def test_a_redirect_does_not_lead_past_the_guard():
    class Moved(Pages):
        def open(self, url):
            return Page("http://bad.example/", "T", ("x",))

    guard = LeakGuard(Moved({}), LeakRules(domains=("bad.example",)))
    with pytest.raises(PageError):
        guard.open("http://good.example/")


def test_guards_with_other_rules_have_other_names():
    site = Pages({})
    names = {
        LeakGuard(site).name,
        LeakGuard(site, tasks=[TASK]).name,
        LeakGuard(site, LeakRules(domains=("x.example",))).name,
        LeakGuard(site, tasks=[TASK], forbidden={"t1": ["more"]}).name,
    }
    assert len(names) == 4
    assert pickle.loads(pickle.dumps(LeakGuard(site, tasks=[TASK]))).name in names


@pytest.mark.parametrize(
    "rules", [{"patterns": ("(",)}, {"domains": "bad.example"}, {"canaries": (" ",)}]
)
def test_wrong_rules_are_named(rules):
    with pytest.raises(ConfigurationError, match=next(iter(rules))):
        LeakRules(**rules)


words = st.lists(st.sampled_from([f"w{n}" for n in range(6)]), min_size=1, max_size=40)


@given(words, words)
def test_thirteen_words_are_found_as_a_plain_search_finds_them(forbidden, text):
    size = min(13, len(forbidden))
    runs = {tuple(forbidden[n : n + size]) for n in range(len(forbidden) - size + 1)}
    expected = any(tuple(text[n : n + size]) in runs for n in range(len(text)))
    rules = LeakRules(forbidden=(" ".join(forbidden),))
    assert (rule_of(" ".join(text), rules) is not None) is expected


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text):
    assert rule_of(text, secrets=SECRETS) in (None, "13 words", "question", "question and answer")


def test_many_tasks_and_a_long_text_take_no_longer_than_one_look():
    tasks = [
        TaskSecrets(f"t{n}", f"Which of the tall towers of the town is the one of {n}?", ("x",))
        for n in range(2_000)
    ]
    finder = LeakFinder(LeakRules(), tasks)
    text = "which of the tall towers of the town is the one of wood " * 10_000
    start = time.monotonic()
    leak = finder.in_text(text)
    assert time.monotonic() - start < 3
    assert leak is None
