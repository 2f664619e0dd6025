"""Differential test: SWI-Prolog over the exported facts gives the same answers, all of them."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from seekgym.corpora.phantom import PhantomWorld, QuestionSettings
from seekgym.corpora.phantom.kinship import RELATIONS, Kinship
from seekgym.corpora.phantom.prolog import prolog_facts, prolog_query
from seekgym.corpora.phantom.sampling import draw_questions

OFFICIAL = Path(__file__).parents[2] / "cases" / "phantomwiki" / "s1_size25" / "facts.pl"
CLAUSE = re.compile(
    r"^[a-z_]+\(X, Y\) :-\n(?:    .*\n)+|^(?:fe)?male\(X\) :-\n    .*\n", re.MULTILINE
)
needs_swipl = pytest.mark.skipif(
    shutil.which("swipl") is None, reason="swipl is not installed (apt-get install swi-prolog-nox)"
)
SETTINGS = QuestionSettings(
    hops=(1, 8), constraints=(0, 1), kinds=("chain", "attribute", "count"), semantics="set"
)


def official_rules():
    """Return the rules of the official generator, without its facts and the system's clauses."""
    clauses = CLAUSE.findall(OFFICIAL.read_text())
    assert len(clauses) >= 46
    return ":- style_check(-discontiguous).\n" + "".join(sorted(clauses))


@needs_swipl
@pytest.mark.parametrize("rules", ["official", "ours"])
@pytest.mark.parametrize("people", [50, 500])
def test_prolog_gives_the_same_answers(people, rules, tmp_path):
    world = PhantomWorld(people, 5)
    drawn = draw_questions(
        world.people, SETTINGS, count=2_000 if rules == "official" else 200, seed=3
    )
    program = world.to_prolog()
    if rules == "official":
        program = official_rules() + "\n".join(prolog_facts(world.people))
    queries = []
    for number, (question, _) in enumerate(drawn):
        goals, answer = prolog_query(world.people, question)
        queries.append(
            f"(findall({answer}, ({goals}), L{number}), sort(L{number}, S{number}), "
            f'write({number}), forall(member(A{number}, S{number}), (write("|"), '
            f"write(A{number}))), nl)"
        )
    main = "\n".join(f":- {query}." for query in queries)
    path = tmp_path / "world.pl"
    path.write_text(f":- use_module(library(solution_sequences)).\n{program}\n{main}\n:- halt.\n")
    run = subprocess.run(
        ["swipl", "-q", str(path)], capture_output=True, text=True, timeout=300, check=True
    )
    assert run.stderr == ""
    for line, (question, task) in zip(run.stdout.splitlines(), drawn, strict=True):
        _, *answers = line.split("|")
        assert sorted(answers) == sorted(task.answers), question.words(world.people)


@needs_swipl
def test_prolog_agrees_on_lawless_facts(tmp_path):
    """Where siblings marry and cousins are aunts, every exclusion of every rule matters."""
    rng = np.random.default_rng(0)
    is_female = rng.random(14) < 0.5
    parents = sorted({(int(a), int(b)) for a, b in rng.integers(14, size=(22, 2)) if a != b})
    kinship = Kinship.from_pairs(parents, [(0, 1), (1, 2), (7, 3)], is_female.tolist())
    facts = [f'parent("{child}", "{parent}").' for child, parent in parents]
    facts += [f'friend_("{a}", "{b}").' for a, b in ((0, 1), (1, 2), (7, 3))]
    facts += [f'gender("{p}", "{"female" if f else "male"}").' for p, f in enumerate(is_female)]
    goals = [
        f":- forall({name}(X, Y), (write({name}), write(' '), write(X), write(' '), write(Y), nl))."
        for name in RELATIONS
    ]
    program = "\n".join([official_rules(), *facts, *goals, ":- halt.", ""])
    (tmp_path / "lawless.pl").write_text(program)
    run = subprocess.run(
        ["swipl", "-q", "lawless.pl"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    expected = {(r, int(x), int(y)) for r, x, y in map(str.split, run.stdout.splitlines())}
    everyone = np.arange(14, dtype=np.int32)
    ours = {
        (name, int(x), int(y))
        for name in RELATIONS
        for x, y in zip(*kinship.pairs(name, everyone), strict=True)
    }
    assert ours == expected
    assert {name for name, _, _ in ours} == set(RELATIONS)
