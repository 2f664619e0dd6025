"""Questions have one answer, proofs prove it, and the order of asking changes nothing."""

import json
import re
from collections import Counter

import pytest

from seekgym.corpora import BM25Retriever, Corpus, TaskSet
from seekgym.corpora.errors import ConfigurationError
from seekgym.corpora.phantom import (
    PhantomWorld,
    QuestionSettings,
    certify,
    find_leaks,
    leak_table,
)
from seekgym.corpora.phantom.grammar import KINDS
from seekgym.corpora.phantom.kinship import RELATIONS
from seekgym.corpora.phantom.sampling import draw_questions

EVERYTHING = QuestionSettings(hops=(1, 6), constraints=(0, 3), kinds=KINDS)


@pytest.fixture(scope="module")
def world():
    return PhantomWorld(600, 11)


@pytest.fixture(scope="module")
def retriever(world):
    return BM25Retriever(world.corpus)


@pytest.fixture(scope="module")
def drawn(world):
    return draw_questions(world.people, EVERYTHING, count=1_000, seed=4)


def denoted(people, chain):
    """Return all whom a chain's words fit, worked out from the facts alone."""
    start = chain.people[0]
    reached = [start]
    if chain.constraints:
        reached = [
            other
            for other in range(len(people))
            if all(people.value(other, a) == people.value(start, a) for a in chain.constraints)
        ]
    for place, (relation, chosen_by) in enumerate(zip(chain.relations, chain.filters, strict=True)):
        reached = people.kinship.related(relation, reached).tolist()
        if chosen_by:
            value = people.value(chain.people[place + 1], chosen_by)
            reached = [other for other in reached if people.value(other, chosen_by) == value]
        yield reached
    yield reached


def test_every_description_denotes_one_person(world, drawn):
    for question, _ in drawn:
        for chain in question.chains:
            steps = [[chain.people[0]], *denoted(world.people, chain)]
            if not chain.relations:
                assert steps[-1] == [chain.end]
            assert [reached for reached in steps[1:-1]] == [[p] for p in chain.people[1:]]
            assert all(len(reached) == 1 for reached in steps)


def test_answers_are_right(world, drawn):
    people = world.people
    for question, task in drawn:
        ends = [chain.end for chain in question.chains]
        births = {person: people.value(person, "birth") for person in ends}
        match question.kind:
            case "chain":
                expected = people.name(ends[0])
            case "attribute":
                expected = people.value(ends[0], question.asked)
            case "comparison":
                assert births[ends[0]] != births[ends[1]]
                expected = people.name(min(ends, key=births.__getitem__))
            case "superlative":
                group = people.kinship.related(question.asked, ends).tolist()
                assert len({people.value(p, "birth") for p in group}) == len(group) >= 2
                choose = min if question.value == "oldest" else max
                expected = people.name(choose(group, key=lambda p: people.value(p, "birth")))
            case "count":
                expected = str(len(people.kinship.related(question.asked, ends)))
            case "yes_no":
                is_so = people.value(ends[0], question.asked) == question.value
                expected = "yes" if is_so else "no"
            case "unanswerable":
                assert len(people.kinship.related(question.asked, ends)) == 0
                expected = "unknown"
        assert task.answers == (expected,)


def test_every_fact_of_a_proof_is_stated_in_its_article(world, drawn):
    for question, task in drawn:
        assert [step.document for step in task.proof] == list(task.evidence)
        for step in task.proof:
            document = world.corpus[step.document]
            for fact in step.fact.rstrip(".").split(". "):
                told = re.fullmatch(r"The ([\w ]+) of (\w+ \w+) (?:is|are) (.+)", fact)
                if told is None:
                    assert question.kind == "unanswerable"
                    continue
                assert told[2] == document.title
                assert all(part in document.text for part in told[3].split(", "))
                if "are" not in fact:
                    assert f"{fact}." in document.text


def test_hops_are_the_documents_of_the_proof(drawn):
    for question, task in drawn:
        ends_with_filter = any(chain.filters[-1:] not in ((), ("",)) for chain in question.chains)
        extra = len(task.evidence) - task.hops
        assert extra == (ends_with_filter and question.kind == "chain")
        assert len(set(task.evidence)) == len(task.evidence)


def test_cells_hold_what_they_say_and_are_balanced(drawn):
    cells = Counter()
    for question, task in drawn:
        assert question.hops == task.hops
        assert question.kind == task.kind
        assert question.constraints == task.question.count("whose ")
        assert task.level == str(question.difficulty)
        cells[question.kind, question.hops, question.constraints] += 1
    assert set(cells) == set(EVERYTHING.cells)
    assert max(cells.values()) - min(cells.values()) <= 2


def test_questions_and_ids_never_repeat(drawn):
    assert len({task.question for _, task in drawn}) == len(drawn)
    assert len({task.id for _, task in drawn}) == len(drawn)


def test_yes_and_no_are_as_many(drawn):
    answers = Counter(task.answers for question, task in drawn if question.kind == "yes_no")
    assert abs(answers["yes",] - answers["no",]) <= len(EVERYTHING.cells)


def test_each_end_of_a_comparison_is_about_as_often_the_answer(world, drawn):
    first = [
        task.answers[0] == world.people.name(question.chains[0].end)
        for question, task in drawn
        if question.kind == "comparison"
    ]
    assert 0.35 <= sum(first) / len(first) <= 0.65


def test_difficulty_is_the_sum_of_weights(world):
    settings = QuestionSettings(hops=(1, 5))
    for question, task in draw_questions(world.people, settings, count=100, seed=1):
        weights = [RELATIONS[name].weight for chain in question.chains for name in chain.relations]
        assert int(task.level) == sum(weights) + (question.kind == "attribute")


def test_the_same_seed_gives_the_same_question_in_a_shared_cell(world):
    def by_id(settings, count, seed=2):
        return {task.id: task for task in world.tasks(count, seed=seed, settings=settings)}

    few = by_id(QuestionSettings(hops=(1, 3), kinds=("chain",)), 30)
    many = by_id(QuestionSettings(hops=(2, 6), kinds=("chain", "comparison")), 300)
    shared = set(few) & set(many)
    assert len(shared) >= 20
    assert all(few[name] == many[name] for name in shared)
    assert by_id(QuestionSettings(), 50, seed=3) != by_id(QuestionSettings(), 50, seed=4)


def test_with_a_retriever_every_proof_plays_and_nothing_leaks(world, retriever):
    settings = QuestionSettings(
        hops=(1, 5), constraints=(0, 2), kinds=("chain", "attribute", "comparison", "yes_no")
    )
    tasks = world.tasks(400, settings=settings, retriever=retriever)
    assert all(certify(tasks, retriever, 3))
    leaks = find_leaks(tasks, retriever, 3)
    assert not any(leak for leak, task in zip(leaks, tasks, strict=True) if task.hops >= 2)
    assert sum(number for _, number in leak_table(tasks, retriever, 3).values()) == 400
    answers = Counter(task.answers for task in tasks if task.kind == "yes_no")
    assert abs(answers["yes",] - answers["no",]) <= 15


def test_without_a_check_short_questions_leak(world, retriever):
    tasks = world.tasks(200, settings=QuestionSettings(hops=(2, 2)))
    assert sum(find_leaks(tasks, retriever, 3)) > 20


def test_a_proof_that_cannot_be_played_is_not_certified(world, retriever):
    tasks = world.tasks(20, settings=QuestionSettings(hops=(2, 2)))
    other = BM25Retriever(PhantomWorld(600, 12).corpus)
    assert all(certify(tasks, retriever, 3))
    assert not any(certify(tasks, other, 3))


def test_set_semantics_asks_for_every_answer(world):
    settings = QuestionSettings(
        kinds=("chain", "attribute", "count"), constraints=(0, 1), semantics="set"
    )
    tasks = world.tasks(300, settings=settings)
    assert all(task.is_answer_set for task in tasks)
    assert sum(len(task.answers) > 1 for task in tasks) > 100
    assert all(list(task.answers) == sorted(set(task.answers)) for task in tasks)
    assert len({task.question for task in tasks}) == 300


def test_easy_relations_alone_make_easy_chains(world):
    settings = QuestionSettings(hops=(7, 7), kinds=("chain",), relations="easy")
    for task in world.tasks(20, settings=settings):
        assert int(task.level) == task.hops == len(task.evidence) == 7


def test_a_large_world_draws_from_pools():
    world = PhantomWorld(40_000)
    tasks = world.tasks(300, settings=QuestionSettings(hops=(2, 4), constraints=(1, 2)))
    assert len(tasks) == 300
    assert len({task.evidence[0] for task in tasks}) > 200


def test_export_reads_back(world, tmp_path):
    tasks = world.tasks(50)
    seen = []
    world.export(tmp_path, tasks=tasks, progress=lambda *progress: seen.append(progress))
    corpus = Corpus.from_jsonl(tmp_path / "corpus.jsonl")
    assert list(corpus) == list(world.corpus)
    assert list(TaskSet.from_jsonl(tmp_path / "tasks.jsonl", corpus=corpus)) == list(tasks)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["people"] == list(world.facts())
    assert facts["settings"]["people"] == 600
    assert seen == [("corpus.jsonl", 600, 600), ("tasks.jsonl", 50, 50), ("facts.json", 602, 602)]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"hops": (3, 1)}, r"hops must be \(fewest, most\) with 1 <= fewest"),
        ({"hops": (0, 3)}, "hops"),
        ({"hops": 3}, "hops must be a pair"),
        ({"hops": (1, 2.0)}, "hops must be a pair"),
        ({"constraints": (0, 4)}, "constraints"),
        ({"constraints": (0, 2), "semantics": "set"}, "constraints"),
        ({"kinds": ("chian",)}, "did you mean 'chain'"),
        ({"kinds": ("comparison",), "semantics": "set"}, "unknown kind"),
        ({"kinds": ()}, "kinds"),
        ({"kinds": ("superlative",), "hops": (1, 2)}, "a superlative 3"),
        ({"relations": ("mothr",)}, "unknown relation 'mothr'; did you mean 'mother'"),
        ({"relations": ("married",)}, "unknown relation"),
        ({"relations": ()}, "relations"),
        ({"semantics": "sets"}, "did you mean 'set'"),
    ],
)
def test_bad_settings_are_named(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        QuestionSettings(**arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((0,), "count"), ((True,), "count"), ((2.5,), "count")],
)
def test_bad_counts_are_named(world, arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        world.tasks(*arguments)
    with pytest.raises(ConfigurationError, match="seed"):
        world.tasks(3, seed=-1)


def test_a_world_too_small_says_how_many_questions_it_holds():
    world = PhantomWorld(12)
    settings = QuestionSettings(hops=(1, 1), kinds=("attribute",))
    with pytest.raises(
        ConfigurationError, match=r"count must be at most 72, got 100: .* 12 people"
    ):
        world.tasks(100, settings=settings)
    assert len(world.tasks(72, settings=settings)) == 72
    with pytest.raises(ConfigurationError, match="at most 0"):
        PhantomWorld(1, friends=0).tasks(1, settings=QuestionSettings(kinds=("chain",)))
