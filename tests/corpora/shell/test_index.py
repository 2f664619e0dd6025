"""The index is never trusted when it is stale or torn, and never loses a line."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

from seekgym.corpora.errors import ConfigurationError, CorpusError
from seekgym.corpora.shell import PlainRunner, parse
from seekgym.corpora.shell import build as building
from seekgym.corpora.shell.build import build_index, refresh_index
from seekgym.corpora.shell.engine import IndexedEngine
from seekgym.corpora.shell.index import GrepIndex, index_path
from seekgym.corpora.shell.literals import Requirement
from seekgym.corpora.shell.shadow import choose_portion


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    lines = [f"line {n} word{n * 7919 % 1000}" for n in range(4_000)]
    (folder / "a.txt").write_text("\n".join(lines) + "\n")
    (folder / "sub" / "b.txt").write_text("\n".join(reversed(lines)) + "\nlast without end")
    return folder


@pytest.fixture
def make(root):
    engines = []

    def engine(**settings):
        build_index(root, **settings)
        made = IndexedEngine(root, GrepIndex(index_path(root)), PlainRunner(root), least_bytes=0)
        engines.append(made)
        return made

    yield engine
    for made in engines:
        made.close()
        made.runner.close()


def run(engine, command):
    """Run a command; check it against the plain programs; return its output."""
    pipeline = parse(command)
    result = engine.run(pipeline)
    served = engine.served
    assert result == engine.runner.run(pipeline)
    return result.stdout, served


def test_a_block_that_holds_a_literal_is_a_candidate(root, make):
    index = make(block_bytes=256).index
    rng = np.random.default_rng(0)
    for name, file in index.files.items():
        data = (root / name).read_bytes()
        bounds = index.bounds_of(file)
        assert bounds[0] == 0
        assert bounds[-1] == len(data)
        for _ in range(200):
            block = int(rng.integers(file.blocks))
            text = data[bounds[block] : bounds[block + 1]].strip(b"\n")
            assert data[bounds[block + 1] - 1 : bounds[block + 1]] == b"\n" or name == "sub/b.txt"
            start = int(rng.integers(len(text) - 3))
            literal = text[start : start + int(rng.integers(3, 12))].lower()
            if b"\n" in literal or len(literal) < 3:
                continue
            found = index.candidates(Requirement(((literal,),), False))
            assert file.first_block + block in found


def test_lines_of_blocks_add_up(root, make):
    index = make(block_bytes=300).index
    assert index.lines_of(index.files["a.txt"]).sum() == 4_000
    assert index.lines_of(index.files["sub/b.txt"]).sum() == 4_001


@pytest.mark.parametrize("command", ["grep word919 a.txt", "rg -n word919", "grep -r word919 ."])
def test_a_changed_file_is_read_in_full(root, make, command):
    engine = make()
    assert run(engine, command)[1]
    with open(root / "a.txt", "a") as file:
        file.write("late word919\n")
    out, served = run(engine, command)
    assert b"late" in out
    assert not served
    index, is_new = refresh_index(root)
    assert is_new
    fresh = IndexedEngine(root, index, engine.runner, least_bytes=0)
    assert run(fresh, command) == (out, True)
    fresh.close()


def test_a_file_of_the_same_size_and_time_is_noticed(root, make):
    engine = make()
    status = os.stat(root / "a.txt")
    text = (root / "a.txt").read_text()
    (root / "a.txt").write_text(text.replace("word919", "drow919"))
    os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert os.stat(root / "a.txt").st_size == status.st_size
    out, served = run(engine, "grep drow919 a.txt")
    assert out
    assert not served


def test_a_new_file_stops_the_search_of_a_folder_alone(root, make):
    engine = make()
    (root / "sub" / "c.txt").write_text("word919 too\n")
    assert not run(engine, "rg word919")[1]
    assert not run(engine, "grep -r word919 sub")[1]
    assert run(engine, "rg word919 a.txt")[1]


def test_a_link_stops_the_search_of_a_folder(root, make):
    (root / "link.txt").symlink_to("a.txt")
    engine = make()
    assert not run(engine, "rg word919")[1]
    assert not run(engine, "rg word919 link.txt")[1]
    assert run(engine, "rg word919 sub/b.txt")[1]


@pytest.mark.parametrize("place", [0, 10, 30, 60, 4_000, -5, -40])
def test_a_damaged_index_is_refused_and_built_again(root, make, place):
    make()
    path = index_path(root)
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="not a usable index"):
        GrepIndex(path)
    assert refresh_index(root)[1]
    assert not refresh_index(root)[1]


@pytest.mark.parametrize("size", [0, 7, 40, 1_000])
def test_a_torn_index_is_refused(root, make, size):
    make()
    path = index_path(root)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorpusError, match="not a usable index"):
        GrepIndex(path)


def test_an_interrupted_build_leaves_the_old_index(root, make):
    make()
    before = index_path(root).read_bytes()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(root, on_progress=stop)
    assert index_path(root).read_bytes() == before
    assert sorted(p.name for p in root.parent.iterdir()) == ["root", "root.grepindex"]


def test_lines_longer_than_what_is_read_at_once(root, make, monkeypatch):
    monkeypatch.setattr(building, "_CHUNK_BYTES", 1_000)
    long = "".join(f"<{n}>" for n in range(2_000))
    (root / "long.txt").write_text(f"short\n{long}\nafter\n{long}NEEDLE")
    engine = make(block_bytes=100)
    for start in range(0, len(long) - 9, 97):
        text = long[start : start + 9]
        assert run(engine, f"grep -c -F '{text}' long.txt") == (b"2\n", True)
    assert run(engine, "grep -n -o NEEDLE long.txt") == (b"4:NEEDLE\n", True)


def test_more_blocks_than_a_segment_and_a_batch_hold(root, make, monkeypatch):
    monkeypatch.setattr(building, "SEGMENT_BLOCKS", 64)
    monkeypatch.setattr("seekgym.corpora.shell.index.SEGMENT_BLOCKS", 64)
    monkeypatch.setattr("seekgym.corpora.shell.postings._BATCH_BLOCKS", 16)
    engine = make(block_bytes=64)
    for number in range(0, 1_000, 37):
        out, served = run(engine, f"rg -n -w word{number} a.txt sub/b.txt")
        assert served
        assert len(out.splitlines()) == 8


def test_context_is_whole_and_apart(root, make):
    engine = make(block_bytes=64)
    for count in (0, 1, 2, 3, 5, 40):
        for program in ("rg", "grep -E"):
            for flag in ("-A", "-B", "-C"):
                assert run(engine, f"{program} {flag} {count} 'word919|line 391[0-9]' a.txt")[1]


def test_a_common_literal_is_read_in_full(root, make, monkeypatch):
    engine = make(block_bytes=64)
    monkeypatch.setattr("seekgym.corpora.shell.engine._ALWAYS_SERVED", 1_000)
    assert not run(engine, "grep -c line a.txt")[1]
    assert run(engine, "grep -c word919 a.txt")[1]


def test_a_mark_in_the_middle_does_not_become_one_at_the_start(root, make):
    (root / "mark.txt").write_bytes(b"x\n" * 500 + b"\xef\xbb\xbfword919\n\xff\xfeword918\n")
    engine = make(block_bytes=4)
    for word in ("word919", "word918"):
        for command in (
            f"rg '^.?{word}' mark.txt",
            f"rg -c {word} mark.txt",
            f"grep {word} mark.txt",
        ):
            run(engine, command)


def test_threads_share_an_engine(root, make):
    engine = make()
    wrong = []

    def work(number):
        for step in range(6):
            word = (number * 6 + step) * 7 % 1_000
            if not run(engine, f"rg -c -w word{word} a.txt")[1]:
                wrong.append(word)

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_engine_pickles_and_is_shared_by_copies(make):
    engine = make()
    again = pickle.loads(pickle.dumps(engine))
    assert run(again, "rg -c word919") == run(engine, "rg -c word919")
    assert copy.deepcopy(engine) is engine
    again.close()
    again.runner.close()


def test_nothing_is_left_in_memory(make):
    engine = make()
    run(engine, "rg -c word919")
    (place,) = engine._idle
    assert place.shadow.path.is_dir()
    engine.close()
    assert not place.shadow.path.exists()


def test_a_forked_process_has_folders_of_its_own(make):
    engine = make()
    expected = run(engine, "rg -c word919")
    (place,) = engine._idle
    child = os.fork()
    if child == 0:
        is_right = run(engine, "rg -c word919") == expected and engine._idle[0] is not place
        engine.close()
        place.shadow.close()
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert place.shadow.path.is_dir()
    assert run(engine, "rg -c word919") == expected


def test_an_index_inside_its_folder_is_refused(root):
    with pytest.raises(ConfigurationError, match="may not lie in"):
        build_index(root, root / "index")
    with pytest.raises(ConfigurationError, match="not a folder"):
        build_index(root / "a.txt")


def test_gaps_keep_line_numbers(make):
    index = make(block_bytes=64).index
    file = index.files["a.txt"]
    lines = index.lines_of(file)
    portion = choose_portion(index, file, np.array([3, 4, 9]), needs_numbers=True, context=0)
    assert portion.gaps == (lines[:3].sum(), lines[5:9].sum(), lines[10:].sum())
