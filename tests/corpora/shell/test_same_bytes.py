"""What the index serves is, byte for byte, what the plain programs write."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from pipelines import Generator, write_corpus

from seekgym.corpora.shell import PlainRunner, parse
from seekgym.corpora.shell.build import build_index
from seekgym.corpora.shell.engine import IndexedEngine
from seekgym.corpora.shell.index import GrepIndex

ENCODINGS = Path(__file__).parents[2] / "cases" / "encodings"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    write_corpus(folder / "root", ENCODINGS)
    build_index(folder / "root", folder / "index", block_bytes=512)
    runner = PlainRunner(folder / "root")
    made = IndexedEngine(folder / "root", GrepIndex(folder / "index"), runner, least_bytes=0)
    yield made
    made.close()
    runner.close()


def seen(runner, pipeline):
    """Return what can be compared.

    What a program still complains about when the one after it has stopped reading is a matter of
    timing, with the plain programs too.
    """
    result = runner.run(pipeline)
    is_cut = any(s.program == "head" or s.arguments == ("3q",) for s in pipeline.stages[1:])
    return dataclasses.replace(result, stderr=b"") if is_cut else result


def check(engine, seed, count):
    """Compare random pipelines; return how many were headed by a search, and how many served."""
    searches = served = 0
    for number in range(count):
        rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
        pipeline = Generator(engine.root, rng).pipeline()
        assert seen(engine, pipeline) == seen(engine.runner, pipeline), pipeline
        if pipeline.stages[0].program in ("rg", "grep"):
            searches += 1
            served += engine.served
    print(f"\n{count} pipelines, {searches} headed by rg or grep, {served / searches:.1%} served")
    return searches, served


def test_2000_random_pipelines(engine):
    searches, served = check(engine, 1, 2_000)
    assert served >= 0.6 * searches


@pytest.mark.exhaustive
def test_20000_random_pipelines(engine):
    searches, served = check(engine, 2, 20_000)
    assert served >= 0.6 * searches


# Commands on which merging the results of shards gives other bytes.
@pytest.mark.parametrize(
    ("command", "is_served"),
    [
        ("rg -o -N 'the|The' corpus.jsonl | sort | uniq | head -n 5", True),
        ("rg film corpus.jsonl | sort -r | head -n 5", True),
        ("grep -m 2 film corpus.jsonl", True),
        ("rg --max-count 2 film corpus.jsonl", True),
        ("cat corpus.jsonl | grep -m 2 film", False),
        ("rg --count-matches film corpus.jsonl", True),
        ("grep -b film corpus.jsonl", False),
        ("rg --byte-offset film corpus.jsonl", False),
        ("rg --column film corpus.jsonl", True),
        ("rg --vimgrep film corpus.jsonl", True),
        ("rg --after-context=1 film corpus.jsonl", True),
        ("grep -n -B 3 film corpus.jsonl", True),
        ("grep -A 0 film corpus.jsonl", True),
        ("grep -A 2 -P the latin.txt", False),
        ("grep -vc film corpus.jsonl", True),
        ("rg film corpus.jsonl | sed -n 1p", True),
        ("rg film corpus.jsonl | sed 3q", True),
        ("rg film corpus.jsonl | sed '$d'", True),
        ("rg film corpus.jsonl | sed =", True),
        ("rg 'corpus.jsonl|film' corpus.jsonl", True),
        ("rg film corpus.jsonl no-end.txt", True),
        ("rg 'film|band|war' corpus.jsonl | wc -l", True),
        ("grep 'film\\|band' corpus.jsonl | wc -l", True),
    ],
)
def test_the_twelve_kinds(engine, command, is_served):
    pipeline = parse(command)
    result = engine.run(pipeline)
    assert engine.served is is_served
    assert result == engine.runner.run(pipeline)
    assert result.stdout or result.exit_code == 0


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "\\", "(?P<x>", "a{2", "(?<", "[[:x:]]"])
@pytest.mark.parametrize("head", ["rg", "rg -P", "grep", "grep -E", "grep -P"])
def test_bad_patterns_complain_alike(engine, head, pattern):
    pipeline = parse(f"{head} -e '{pattern}' corpus.jsonl")
    assert engine.run(pipeline) == engine.runner.run(pipeline)


@pytest.mark.parametrize("name", sorted(path.name for path in ENCODINGS.glob("*.txt")))
def test_files_in_any_encoding(engine, name):
    text = (engine.root / name).read_bytes().decode("utf-8", "ignore")
    words = sorted(set(re.findall(r"\w{4,}", text)), key=len)[-3:]
    for word in [*words, "Wikipedia"]:
        for head in ("rg -n", "rg -i -o", "grep -c", "grep -i", "grep -aP"):
            pipeline = parse(f"{head} '{word}' {name}")
            assert engine.run(pipeline) == engine.runner.run(pipeline)
            assert engine.served or "-i" in head


def test_a_file_in_utf16_is_found_as_text(engine):
    pipeline = parse("rg -c the utf16.txt")
    result = engine.run(pipeline)
    assert engine.served
    assert int(result.stdout) > 10
    assert result == engine.runner.run(pipeline)


def test_a_line_end_of_two_bytes(engine):
    for head in ("rg", "rg --crlf", "grep"):
        pipeline = parse(f"{head} -c 'the.*[.]*$' crlf.txt")
        assert engine.run(pipeline) == engine.runner.run(pipeline)
        assert engine.served
