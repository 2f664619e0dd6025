"""Worlds are lawful: kin, ages, friends and names."""

import pickle

import numpy as np
import pytest

from seekgym.corpora.errors import ConfigurationError
from seekgym.corpora.phantom import PhantomWorld, WorldSettings
from seekgym.corpora.phantom.kinship import RELATIONS
from seekgym.corpora.phantom.people import People, _unrank

YEAR = 365.2425


@pytest.fixture(
    scope="module", params=[(700, 0, 25, 5, 5), (903, 1, 10, 10, 10), (300, 2, 7, 2, 1)]
)
def people(request):
    number, seed, size, depth, branching = request.param
    return People.draw(
        WorldSettings(
            number, seed, family_size=size, family_depth=depth, branching=branching, friends=4
        )
    )


def everyone(people):
    return np.arange(len(people), dtype=np.int32)


def relation(people, name):
    sources, targets = people.kinship.pairs(name, everyone(people))
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


@pytest.mark.parametrize("name", ["friend", "sibling", "married", "cousin"])
def test_symmetric_relations_are_symmetric(people, name):
    pairs = set(relation(people, name))
    assert pairs == {(other, one) for one, other in pairs}
    assert all(one != other for one, other in pairs)


def test_a_child_of_a_parent_is_oneself_or_a_sibling(people):
    for person, parent in relation(people, "parent"):
        assert person in people.kinship.related("child", [parent])


def test_pairs_agree_with_related(people):
    for name in RELATIONS:
        pairs = relation(people, name)
        assert pairs == sorted(set(pairs))
        for person in range(0, len(people), 97):
            assert [t for s, t in pairs if s == person] == people.kinship.related(
                name, [person]
            ).tolist()


def test_everyone_has_two_parents_of_both_genders_or_none(people):
    base = people.kinship.base["parent"]
    for person in range(len(people)):
        genders = [people.is_female(parent) for parent in base.row(person)]
        assert sorted(genders) in ([], [False, True])


def test_ages_make_sense(people):
    birth = people.birth
    for child, parent in relation(people, "parent"):
        assert 18 * YEAR - 1 <= birth[child] - birth[parent] <= 45 * YEAR + 1
    for one, other in relation(people, "married"):
        assert abs(birth[one] - birth[other]) <= 10 * YEAR + 1
    for one, other in relation(people, "sibling"):
        gap = abs(birth[one] - birth[other])
        assert gap == 0 or gap >= 300


def test_no_one_is_their_own_ancestor(people):
    # Every parent is older than every child, so no chain of parents can come back.
    assert all(
        people.birth[parent] < people.birth[child] for child, parent in relation(people, "parent")
    )


def test_families_keep_their_limits(people):
    settings = people.settings
    assert np.diff(people.family_starts).max() <= settings.family_size
    children = people.kinship.counts("child", everyone(people))
    assert children.max() <= settings.branching
    longest = everyone(people)
    for _ in range(settings.family_depth):
        longest = people.kinship.follow(longest, ["child"])
    assert len(longest) == 0
    assert len(people) == settings.people


def test_friendship_has_the_asked_mean_degree():
    for mean in (0, 0.5, 3, 8):
        people = People.draw(WorldSettings(20_000, 3, friends=mean))
        degrees = people.kinship.counts("friend", everyone(people))
        assert abs(degrees.mean() - mean) <= 5 * np.sqrt(2 * mean / 20_000)
        assert abs(degrees.var() - mean) <= 0.2 * mean + 1e-9  # Poisson, in the limit


def test_dense_and_complete_friendship_graphs():
    people = People.draw(WorldSettings(40, friends=39))
    assert people.kinship.counts("friend", everyone(people)).tolist() == [39] * 40
    assert len(People.draw(WorldSettings(1, friends=0))) == 1


def test_ranks_of_pairs_come_back():
    pairs = [(low, high) for high in range(60) for low in range(high)]
    low, high = _unrank(np.arange(len(pairs)))
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == pairs
    big = 3_000_000 * 2_999_999 // 2 - 1
    assert [int(x[0]) for x in _unrank(np.array([big]))] == [2_999_998, 2_999_999]


def test_names_never_repeat_and_splits_share_no_part_of_one():
    parts = {}
    for split in ("train", "test"):
        names = []
        for seed in (0, 1):
            people = People.draw(WorldSettings(30_000, seed, split))
            full = [people.name(person) for person in range(len(people))]
            assert len(set(full)) == len(full)
            names += full
        parts[split] = {part for name in names for part in name.split()}
    assert parts["train"].isdisjoint(parts["test"])
    assert {part[-1] for part in parts["train"]} == set("nkvx")
    assert {part[-1] for part in parts["test"]} == set("mtzg")


def test_children_have_their_fathers_surname(people):
    for child, father in relation(people, "father"):
        assert people.name(child).split()[1] == people.name(father).split()[1]


def test_a_value_finds_who_has_it(people):
    for attribute in ("hobby", "birth"):
        key = people.key(5, attribute)
        assert (
            people.with_value(attribute, key).tolist()
            == np.flatnonzero(people.keys(attribute) == key).tolist()
        )
    assert 5 in people.alike(5, ("hobby", "instrument", "birth"))
    assert len(people.with_value("hobby", 30_000)) == 0


def test_a_world_pickles_as_its_settings(people):
    pickled = pickle.dumps(people)
    assert len(pickled) < 500
    again = pickle.loads(pickled)
    assert np.array_equal(again.birth, people.birth)
    assert again.name(17) == people.name(17)


def test_a_person_costs_tens_of_bytes():
    assert People.draw(WorldSettings(10_000)).nbytes < 80 * 10_000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"people": 0}, "people must be a whole number from 1"),
        ({"people": 2.5}, "people"),
        ({"people": True}, "people"),
        ({"people": 20_000_000}, "people"),
        ({"people": 50, "world_seed": -1}, "world_seed"),
        ({"people": 50, "friends": 50}, "friends must be between 0 and people - 1"),
        ({"people": 50, "friends": -1}, "friends"),
        ({"people": 50, "family_size": 0}, "family_size"),
        ({"people": 50, "family_depth": 1}, "family_depth"),
        ({"people": 50, "branching": 11}, "branching"),
        ({"people": 50, "split": "tset"}, "did you mean 'test'"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        WorldSettings(**arguments)


def test_a_bad_family_is_named():
    with pytest.raises(ConfigurationError, match="family must be"):
        PhantomWorld(50, family=(25, 5))
    with pytest.raises(ConfigurationError, match="branching"):
        PhantomWorld(50, family=(25, 5, 0))
