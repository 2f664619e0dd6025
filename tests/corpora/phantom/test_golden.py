"""Golden seeds: a change of any of these hashes is a new version of the environments.

Run this file to print new ones, once a change is meant.
"""

import hashlib
import os
import subprocess
import sys

import pytest

from seekgym.corpora import TaskSet
from seekgym.corpora.phantom import PhantomWorld, QuestionSettings
from seekgym.corpora.phantom.grammar import KINDS

EVERYTHING = QuestionSettings(hops=(1, 6), constraints=(0, 2), kinds=KINDS)
SETS = QuestionSettings(kinds=("chain", "attribute", "count"), constraints=(0, 1), semantics="set")
WORLDS = {
    1: {"people": 50},
    2: {"people": 1_000, "style": "prose", "family": (10, 10, 5)},
    3: {"people": 20_000, "split": "test", "friends": 4.5},
}
GOLDEN = {
    1: ["ee0a8638a3197d82", "d99a0d66b3f97d69", "06e2630bd6f2d24d"],
    2: ["f6b778bc6ee1ace6", "737999aa3a9e0b2d", "4657f0c336f5f5bf"],
    3: ["b84d26bcd08ec592", "493284e536e45799", "f1ec654543e620e1"],
}


def hashes(seed):
    """Return short hashes of a world's arrays, of 500 articles and of its tasks."""
    world = PhantomWorld(world_seed=seed, **WORLDS[seed])
    people = world.people
    arrays = [people.birth, people.lineage, people.kinship.is_female, *people.codes.values()]
    for adjacency in people.kinship.base.values():
        arrays += [adjacency.offsets, adjacency.targets]
    facts = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    articles = hashlib.sha256(repr(world.corpus[:500]).encode()).hexdigest()
    definite = world.tasks(300, seed=seed, settings=EVERYTHING)
    tasks = TaskSet([*definite, *(world.tasks(100, seed=seed, settings=SETS) if seed < 3 else ())])
    return [facts[:16], articles[:16], tasks.fingerprint[:16]]


@pytest.mark.parametrize("seed", WORLDS)
def test_golden_seeds(seed):
    assert hashes(seed) == GOLDEN[seed]


def test_hash_seeds_and_processes_do_not_matter():
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, __file__, "1", "2"],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        assert run.stdout.splitlines() == [f"{seed}: {GOLDEN[seed]}" for seed in (1, 2)]


if __name__ == "__main__":
    for chosen in map(int, sys.argv[1:] or WORLDS):
        print(f"{chosen}: {hashes(chosen)}")
