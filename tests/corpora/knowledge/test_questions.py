"""Questions have one answer by two ways, proofs prove it, and no shortcut leads around them."""

from collections import Counter, defaultdict

import pytest

from seekgym.corpora import BM25Retriever
from seekgym.corpora.certificates import certify
from seekgym.corpora.errors import ConfigurationError
from seekgym.corpora.knowledge import (
    SHORTCUTS,
    KnowledgeWorld,
    QuestionSettings,
    Reader,
    one_query_table,
    solve,
)
from seekgym.corpora.knowledge.shortcuts import ShortcutFinder
from seekgym.corpora.knowledge.terms import KINDS, Clue, Question, Term

EVERYTHING = QuestionSettings(hops=(2, 6), constraints=(2, 4), obfuscation=0.5)
WORLDS = {
    "both": KnowledgeWorld(1_500, 1),
    "subject": KnowledgeWorld(1_500, 2, coverage="subject", noise=0.1),
    "object": KnowledgeWorld(1_500, 3, split="test", coverage="object", noise=0.3),
    "either": KnowledgeWorld(1_500, 4, coverage="either"),
}


class Drawn:
    """A world, its retriever, and tasks that were checked with it."""

    def __init__(self, coverage):
        self.world = WORLDS[coverage]
        self.retriever = BM25Retriever(self.world.corpus)
        self.tasks = self.world.tasks(
            320, seed=5, settings=EVERYTHING, retriever=self.retriever, top_k=5
        )
        documents = list(self.world.corpus)
        reader = Reader(self.world.entities.schema, {document.title for document in documents})
        self.read = {document.id: reader.read(document) for document in documents}


@pytest.fixture(scope="module", params=WORLDS)
def drawn(request):
    return Drawn(request.param)


def test_all_kinds_are_there_in_even_numbers(drawn):
    numbers = Counter(task.kind for task in drawn.tasks)
    assert set(numbers) == set(KINDS)
    assert min(numbers.values()) >= 19
    assert len({task.question for task in drawn.tasks}) == len(drawn.tasks)
    assert len({task.id for task in drawn.tasks}) == len(drawn.tasks)


def test_the_solver_agrees_and_answers_are_unique(drawn):
    graph = drawn.world.graph()
    for task in drawn.tasks:
        assert solve(graph, drawn.tasks.question(task).to_dict()) == list(task.answers)
        assert len(task.answers) == 1 or task.is_answer_set


def test_the_reader_recovers_every_fact_from_the_evidence(drawn):
    world = drawn.world
    graph = world.entities
    for task in drawn.tasks:
        found = {triple for name in task.evidence for triple in drawn.read[name]}
        for subject, predicate, entity in drawn.tasks.proofs[task.id].facts:
            name = graph.name(subject)
            if entity >= 0:
                assert (name, predicate, graph.name(entity)) in found
            elif predicate in graph.edges:  # what has no such relation
                is_inverse = drawn.tasks.question(task).is_inverse
                ends = {(p, o if is_inverse else s) for s, p, o in found}
                assert task.kind == "unanswerable"
                assert (predicate, name) not in ends
            else:
                assert any((s, p) == (name, predicate) for s, p, _ in found)


def test_unanswerable_questions_have_no_answer_anywhere(drawn):
    world = drawn.world
    ends = defaultdict(set)
    for triples in drawn.read.values():
        for subject, predicate, entity in triples:
            ends[predicate, False].add(subject)
            ends[predicate, True].add(entity)
    for task in drawn.tasks:
        if task.kind == "unanswerable":
            question = drawn.tasks.question(task)
            end = world.entities.name(question.terms[0].entity)
            assert end not in ends[question.relation, question.is_inverse]
            assert task.answers == ("unknown",)


def test_proofs_play_and_state_the_shortest_evidence(drawn):
    assert all(certify(drawn.tasks, drawn.retriever, 5))
    for task in drawn.tasks:
        assert [step.document for step in task.proof] == list(task.evidence)
        assert len(set(task.evidence)) == len(task.evidence)
        difficulty = drawn.tasks.difficulty(task)
        assert task.hops == difficulty.hops
        assert difficulty.searches == len(task.proof) == int(task.level)
        assert difficulty.fan_out >= 1
        assert all(step.fact and step.query for step in task.proof)


def test_no_answer_stands_in_its_question(drawn):
    for task in drawn.tasks:
        assert not any(answer.lower() in task.question.lower() for answer in task.answers)


def test_shortcuts_are_found_and_rejected(drawn):
    finder = ShortcutFinder(drawn.world.corpus)
    assert all(not finder.find(proof) for proof in drawn.tasks.proofs.values())
    assert set(drawn.tasks.report.shortcuts) <= set(SHORTCUTS)
    found = sum(tally[1] for tally in drawn.tasks.report.by_kind.values())
    assert 0 < found <= sum(drawn.tasks.report.shortcuts.values())
    shares = drawn.tasks.report.shortcut_shares
    assert tuple(shares) == SHORTCUTS
    assert 0 < sum(shares.values()) < 1


def test_no_article_states_all_that_an_answer_rests_on(drawn):
    """By what the reader finds in every article, not by the writer's word."""
    world = drawn.world
    graph = world.entities
    stated = defaultdict(set)
    for name, triples in drawn.read.items():
        for subject, predicate, told in triples:
            key = (subject, predicate, told) if predicate in graph.edges else (subject, predicate)
            stated[key].add(name)
    for task in drawn.tasks:
        if task.kind == "simple":
            continue
        places = []
        for subject, predicate, entity in drawn.tasks.proofs[task.id].facts:
            key = (graph.name(subject), predicate)
            if entity >= 0:
                places.append(stated[(*key, graph.name(entity))])
            else:
                places.append({f"e{subject}"})
        assert not set.intersection(*places)


def test_one_query_does_not_find_the_evidence(drawn):
    table = one_query_table(drawn.tasks, drawn.retriever)
    for kind in ("chain", "conjunction"):
        found, number = (
            sum(entry[place] for (name, _), entry in table.items() if name == kind)
            for place in (0, 1)
        )
        assert found < 0.2 * number


def test_counts_cannot_be_guessed(drawn):
    counts = Counter(task.answers for task in drawn.tasks if task.kind == "count")
    assert max(counts.values()) <= 0.4 * sum(counts.values()) + 1


def test_a_comparison_names_the_first_as_often_as_the_second(drawn):
    graph = drawn.world.entities
    first = [
        task.answers[0] == graph.name(drawn.tasks.question(task).terms[0].entity)
        for task in drawn.tasks
        if task.kind == "comparison"
    ]
    assert 0.15 < sum(first) / len(first) < 0.85


def test_each_shortcut_is_seen_when_it_is_there():
    world = WORLDS["both"]
    graph = world.entities
    finder = ShortcutFinder(world.corpus)
    plain = world.tasks(60, settings=QuestionSettings(kinds=("chain",), hops=(3, 3)))
    proof = plain.proofs[plain[0].id]
    person = graph.blocks["person"][0]
    city = graph.others(person, "birthplace", is_inverse=False)[0]
    country = graph.others(person, "citizenship", is_inverse=False)[0]
    mayors = [e for e in graph.blocks["city"] if graph.others(e, "mayor", is_inverse=False)]
    mayor = graph.others(mayors[0], "mayor", is_inverse=False)[0]

    def named(entity, *clues):
        return Term(entity, graph.type_of(entity).name, clues)

    def found(question):
        return finder.find(type(proof)(question, proof.task, proof.difficulty, proof.facts))

    assert found(proof.question) == []
    single = named(
        mayor, Clue("mayor", True, named(mayors[0])), Clue("birthplace", False, named(city))
    )
    assert "single clue" in found(Question("conjunction", (single,)))
    exposed = named(city, Clue("birthplace", True, named(person)))
    assert "exposed constant" in found(Question("chain", (exposed,)))
    covered = type(proof)(proof.question, proof.task, proof.difficulty, proof.facts[:1])
    assert "co-coverage" in finder.find(covered)
    language = max(
        graph.blocks["language"],
        key=lambda e: len(graph.others(e, "official_language", is_inverse=True)),
    )
    guess = named(language, Clue("official_language", True, named(country)))
    assert "prior" in found(Question("chain", (guess,)))


def test_a_cell_is_the_same_whatever_else_is_asked_for():
    world = WORLDS["both"]
    few = world.tasks(20, settings=QuestionSettings(kinds=("chain",), hops=(3, 3)))
    many = world.tasks(200, settings=QuestionSettings(kinds=("chain", "date"), hops=(3, 5)))
    shared = {task.id: task for task in many if task.id in few}
    assert len(shared) == len(few)
    assert all(few[name] == task for name, task in shared.items())
    assert list(few) != list(
        world.tasks(20, seed=1, settings=QuestionSettings(kinds=("chain",), hops=(3, 3)))
    )


def test_obfuscation_takes_names_out():
    def share(obfuscation):
        settings = QuestionSettings(kinds=("chain",), hops=(3, 4), obfuscation=obfuscation)
        tasks = WORLDS["both"].tasks(60, settings=settings)
        return sum(tasks.difficulty(task).obfuscation > 0 for task in tasks) / len(tasks)

    assert share(0.0) == 0
    assert 0.3 < share(0.5) < share(1.0)
    assert share(1.0) >= 0.85


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"hops": (1, 3)}, r"hops must be \(fewest, most\) with 2 <= fewest <= most <= 6"),
        ({"hops": (4, 3)}, "hops"),
        ({"hops": 3}, "hops must be a pair"),
        ({"constraints": (2, 5)}, "constraints .* <= 4"),
        ({"kinds": ("chian",)}, "did you mean 'chain'"),
        ({"kinds": ()}, "kinds"),
        ({"kinds": "chain"}, "kinds"),
        ({"obfuscation": 1.5}, "obfuscation must be between 0 and 1"),
        ({"obfuscation": True}, "obfuscation"),
    ],
)
def test_bad_settings_are_named(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        QuestionSettings(**arguments)
