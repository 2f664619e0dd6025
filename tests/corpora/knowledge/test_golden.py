"""Three worlds are pinned byte for byte, in other processes and under other hash seeds too."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from seekgym.corpora.knowledge import KnowledgeWorld, QuestionSettings

EVERYTHING = QuestionSettings(hops=(2, 6), constraints=(2, 4), obfuscation=0.5)
WORLDS = {
    1: {"entities": 600},
    2: {"entities": 2_000, "coverage": "either", "noise": 0.2},
    3: {"entities": 5_000, "split": "test", "coverage": "object"},
}
GOLDEN = {
    1: ["a80e25f6ed996317", "adec9a28e4d64ee4", "ec63778619350b55"],
    2: ["038eeeb3d2ceb9ec", "ba8b7dbdf52e0537", "9918d662fa28887a"],
    3: ["a2a8a9b21c58c7ab", "0dc64c0f639e491d", "eff1b6673f765004"],
}


def hashes(seed):
    """Return short hashes of a world's graph, of its articles and of its tasks."""
    world = KnowledgeWorld(world_seed=seed, **WORLDS[seed])
    graph = hashlib.sha256(json.dumps(world.entities.to_json()).encode()).hexdigest()
    articles = hashlib.sha256(repr(world.corpus[::7]).encode()).hexdigest()
    tasks = world.tasks(160, seed=seed, settings=EVERYTHING)
    return [graph[:16], articles[:16], tasks.fingerprint[:16]]


@pytest.mark.parametrize("seed", WORLDS)
def test_golden_seeds(seed):
    assert hashes(seed) == GOLDEN[seed]


def test_hash_seeds_and_processes_do_not_matter():
    for hash_seed in ("0", "1"):
        run = subprocess.run(
            [sys.executable, __file__, "1", "2"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
        assert run.stdout.splitlines() == [f"{seed}: {GOLDEN[seed]}" for seed in (1, 2)]


if __name__ == "__main__":
    for chosen in map(int, sys.argv[1:] or WORLDS):
        print(f"{chosen}: {hashes(chosen)}")
