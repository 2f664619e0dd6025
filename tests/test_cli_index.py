import os
import subprocess
import sys


def index(*arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "seekgym", "index", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )


def test_a_folder_is_indexed_once_and_again_when_it_changed(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("one line\n" * 100)
    first = index(tmp_path / "raw")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"Wrote {tmp_path}/raw.grepindex: 1 files, 900 bytes")
    assert "Indexing" in first.stderr
    assert index(tmp_path / "raw").stdout.startswith("Still current:")
    (tmp_path / "raw" / "b.txt").write_text("another\n")
    assert "2 files, 908 bytes" in index(tmp_path / "raw").stdout


def test_a_file_is_indexed_alone(tmp_path):
    (tmp_path / "a.jsonl").write_text("one line\n" * 100)
    (tmp_path / "b.jsonl").write_text("another\n")
    out = tmp_path / "kept" / "a.index"
    out.parent.mkdir()
    assert ": 1 files, 900 bytes" in index(tmp_path / "a.jsonl", "--out", out).stdout
    assert out.is_file()
    assert index(tmp_path / "a.jsonl", "--out", out).stdout.startswith("Still current:")


def test_what_cannot_be_indexed_is_one_line(tmp_path):
    done = index(tmp_path / "missing")
    assert done.returncode == 2
    assert done.stderr.strip() == f"seekgym: {tmp_path}/missing: no such file or folder"


def test_nothing_but_an_index_is_written_over(tmp_path):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "a"}\n')
    for arguments in ([corpus, "--out", corpus], [corpus, "--out", tmp_path]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "seekgym", "index", *map(str, arguments)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert corpus.read_text() == '{"id": "a"}\n'
