"""From the official generator's facts, our rules give the official answers to every question."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from seekgym.corpora.phantom.kinship import RELATIONS, Kinship

CASES = Path(__file__).parents[2] / "cases" / "phantomwiki"
FACT = re.compile(r'^(\w+)\("([^"]*)", "([^"]*)"\)\.$', re.MULTILINE)
GOAL = re.compile(r'(\w+)\(("[^"]*"|\w+), ("[^"]*"|\w+)\)')
ATTRIBUTES = ("job", "hobby", "dob")


class OfficialWorld:
    def __init__(self, folder):
        facts = defaultdict(list)
        for predicate, first, second in FACT.findall((folder / "facts.pl").read_text()):
            facts[predicate].append((first, second))
        self.names = sorted(name for name, _ in facts["gender"])
        place = {name: number for number, name in enumerate(self.names)}
        self.kinship = Kinship.from_pairs(
            [(place[child], place[parent]) for child, parent in facts["parent"]],
            [(place[one], place[other]) for one, other in facts["friend_"]],
            [gender == "female" for _, gender in sorted(facts["gender"])],
        )
        self.place = place
        self.values = {name: dict(facts[name]) for name in ATTRIBUTES}

    def answers(self, goals):
        """Answer a query: its goals, the innermost last."""
        *relations, innermost = [GOAL.search(goal).groups() for goal in goals]
        asked = None
        if goals[0].startswith("aggregate_all"):
            asked = "count"
        elif relations and relations[0][0] in ATTRIBUTES:
            asked = relations.pop(0)[0]
        predicate, source, target = innermost
        if predicate in ATTRIBUTES:
            wanted = target.strip('"')
            start = [self.place[n] for n, v in self.values[predicate].items() if v == wanted]
        else:
            start = [self.place[source.strip('"')]]
            relations.append(innermost)
        chain = [relation for relation, _, _ in reversed(relations)]
        if asked == "count":
            people = self.kinship.follow(start, chain[:-1])
            return {str(count) for count in self.kinship.counts(chain[-1], people).tolist()}
        people = [self.names[person] for person in self.kinship.follow(start, chain)]
        return set(people) if asked is None else {self.values[asked][name] for name in people}


@pytest.mark.parametrize("folder", ["s1_size25", "s1_size50_d10"])
def test_every_official_question_has_the_official_answers(folder):
    world = OfficialWorld(CASES / folder)
    lines = (CASES / folder / "questions.jsonl").read_text().splitlines()
    questions = [json.loads(line) for line in lines]
    assert len(questions) == {"s1_size25": 500, "s1_size50_d10": 200}[folder]
    wrong = [
        question["id"]
        for question in questions
        if world.answers(question["prolog"]["query"]) != set(question["answers"])
    ]
    assert wrong == []


def test_the_official_questions_use_most_relations():
    text = "".join(
        (CASES / f / "questions.jsonl").read_text() for f in ("s1_size25", "s1_size50_d10")
    )
    asked = [name for name, rule in RELATIONS.items() if rule.weight and f"{name}(" in text]
    assert len(asked) >= 35


def test_there_are_45_relations():
    assert sum(rule.weight > 0 for rule in RELATIONS.values()) == 45


def test_half_siblings_are_siblings_and_no_cousin_is_oneself():
    # 0 and 1 have child 2, 1 and 3 have child 4; 2 and 4 have child 5
    kinship = Kinship.from_pairs(
        [(2, 0), (2, 1), (4, 1), (4, 3), (5, 2), (5, 4)],
        [],
        [False, True, False, False, True, True],
    )
    assert kinship.related("sibling", [2]).tolist() == [4]
    assert kinship.related("cousin", [5]).tolist() == []
    assert kinship.related("wife", [2]).tolist() == [4]
    assert kinship.related("grandmother", [5]).tolist() == [1]
    assert np.array_equal(kinship.counts("parent", np.array([5, 0], np.int32)), [2, 0])
