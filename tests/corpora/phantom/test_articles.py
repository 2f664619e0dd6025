"""Articles state base facts only, link to whom they name, and can be found."""

import pickle
import re

import pytest

from seekgym.corpora import BM25Retriever
from seekgym.corpora.errors import ConfigurationError
from seekgym.corpora.phantom import PhantomWorld
from seekgym.corpora.phantom.articles import every_relatives, stated_relatives
from seekgym.corpora.phantom.kinship import RELATIONS
from seekgym.corpora.phantom.vocabulary import ATTRIBUTES

STATED = {"mother", "father", "wife", "husband", "sister", "brother", "daughter", "son", "friend"}


@pytest.fixture(scope="module", params=["wiki", "prose"])
def world(request):
    return PhantomWorld(400, 3, style=request.param)


def test_an_article_states_every_base_fact(world):
    people = world.people
    for person in range(len(people)):
        document = world.corpus[person]
        named = set()
        for relation, others in stated_relatives(people, person):
            assert relation in STATED
            assert relation in document.text
            assert others == people.kinship.related(relation, [person]).tolist()
            named.update(others)
        assert all(people.name(other) in document.text for other in named)
        assert all(people.value(person, name) in document.text for name in ATTRIBUTES)
        assert set(document.links) == {f"p{other}" for other in named}
        assert document.title == people.name(person)
        assert document.id == f"p{person}"


def test_all_together_or_one_by_one_relatives_are_the_same():
    people = PhantomWorld(2_300, 5).people
    one_by_one = [stated_relatives(people, person) for person in range(len(people))]
    assert list(every_relatives(people)) == one_by_one


def test_an_article_names_no_derived_relation(world):
    labels = [rule.label for name, rule in RELATIONS.items() if rule.weight and name not in STATED]
    derived = re.compile(rf"\b({'|'.join(labels)})s?\b")
    assert not any(derived.search(document.text) for document in world.corpus)


def test_an_article_states_every_relative(world):
    stated = dict(stated_relatives(world.people, 17))
    for relation in STATED:
        assert stated.get(relation, []) == world.people.kinship.related(relation, [17]).tolist()


def test_the_name_finds_the_article(world):
    retriever = BM25Retriever(world.corpus)
    titles = [document.title for document in world.corpus]
    rankings = retriever.search(titles, 1)
    assert [ranking[0].document_id for ranking in rankings] == list(world.corpus.ids)


def test_prose_has_several_forms_for_a_fact():
    prose = PhantomWorld(400, style="prose").corpus
    texts = [document.text.replace(document.title, "NAME") for document in prose]
    assert len({text.split(" was ")[0][:12] for text in texts}) >= 3
    fond = sum("is fond of" in text for text in texts)
    assert 60 <= fond <= 140


def test_a_corpus_knows_its_ids(world):
    corpus = world.corpus
    assert len(corpus) == 400
    assert corpus["p7"] == corpus[7] == list(corpus)[7]
    assert corpus[-1].id == "p399"
    assert [document.id for document in corpus[2:5]] == ["p2", "p3", "p4"]
    assert "p7" in corpus
    for missing in ("p400", "p-1", "p07", "7", "", "p", "p²", "q7", "p9999999999"):
        assert missing not in corpus
        with pytest.raises(KeyError):
            corpus[missing]


def test_fingerprints_tell_worlds_apart_and_need_no_text(world):
    prints = {
        PhantomWorld(30, seed, style=style, split=split).corpus.fingerprint
        for seed in (0, 1)
        for style in ("wiki", "prose")
        for split in ("train", "test")
    }
    assert len(prints) == 8
    assert PhantomWorld(400, 3, style=world.corpus.style).corpus.fingerprint == (
        world.corpus.fingerprint
    )


def test_a_corpus_and_its_retriever_pickle_small(world):
    retriever = BM25Retriever(world.corpus)
    pickled = pickle.dumps(retriever)
    assert len(pickled) < 2_000
    again = pickle.loads(pickled)
    assert again.search([world.corpus[5].title], 3) == retriever.search([world.corpus[5].title], 3)


def test_an_unknown_style_is_named():
    with pytest.raises(ConfigurationError, match="unknown style 'prosa'; did you mean 'prose'"):
        PhantomWorld(30, style="prosa")
