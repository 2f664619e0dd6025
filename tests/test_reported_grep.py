"""Faults of grep-like tools that users reported in public threads, each as a test of its kind.

The name of each test holds the number of its row in the list of reports.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from seekgym.corpora import CommandError, Corpus, Document, Task, TaskSet
from seekgym.corpora.shell import Limits, PlainRunner, active_fence, parse
from seekgym.envs import EvidenceRecall, GrepEnv

ENCODINGS = Path(__file__).parent / "cases" / "encodings"


def shell(command):
    return {"name": "shell", "arguments": {"command": command}}


def small(*texts, **arguments):
    documents = [Document(f"d{i}", f"T{i}", text) for i, text in enumerate(texts)]
    tasks = TaskSet([Task("t", "Who?", ("Paris",), ("d0",))])
    return GrepEnv(Corpus.from_documents(documents), tasks, **arguments)


def ask(env, command):
    env.reset(seed=0)
    observation, _, _, _, info = env.step(shell(command))
    return json.loads(observation.splitlines()[0]), info


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "corpus"
    root.mkdir()
    return root


@pytest.fixture
def run(folder):
    runner = PlainRunner(folder, limits=Limits(wall_s=5.0))
    yield lambda command: runner.run(parse(command))
    runner.close()


@pytest.mark.parametrize("pattern", ["--pre=/tmp/x.sh", "-f/etc/passwd", "-v", "--", "-e", "-rf"])
@pytest.mark.parametrize("program", ["rg", "grep"])
def test_043_a_pattern_that_begins_with_a_dash_is_literal(pattern, program, folder, run):
    (folder / "f.txt").write_text(f"a {pattern} b\nother\n")
    expected = f"a {pattern} b\n".encode()
    assert run(f"{program} -- '{pattern}' f.txt").stdout == expected
    assert run(f"{program} -e '{pattern}' f.txt").stdout == expected
    assert run(f"{program} -F --regexp='{pattern}' f.txt").stdout == expected


def test_043_without_a_separator_it_is_refused_and_the_way_is_told(run):
    with pytest.raises(CommandError, match="begins with '-' goes after '-e', or after '--'"):
        run("rg --pre=/tmp/x.sh f.txt")


def test_044_there_is_no_shell_to_inject_into(cases):
    env = small("plain")
    for row in cases("command_injection.jsonl"):
        quoted = "'" + row["payload"].replace("'", "'\"'\"'") + "'"
        seen, info = ask(env, f"grep -F -e {quoted} corpus.jsonl"[:2_000])
        assert seen["stdout"] == ""
        assert "uid=" not in seen["stderr"]
        assert info["error"] in (None, "newline", "character")


@pytest.mark.parametrize("pattern", ["(", "[a", "\\", "(?P<x>"])
def test_046_a_bad_pattern_reads_as_an_error_not_as_no_match(pattern):
    seen, info = ask(small("x"), f"rg -- '{pattern}' corpus.jsonl")
    assert (seen["exit_code"], seen["stdout"]) == (2, "")
    assert "error" in seen["stderr"]
    assert info["failure"] is None
    assert ask(small("x"), "rg nothing corpus.jsonl")[0]["exit_code"] == 1


def test_046_a_missing_file_leaves_the_partial_result_and_a_warning():
    seen, info = ask(small("needle"), "rg needle corpus.jsonl missing.jsonl")
    assert "needle" in seen["stdout"]
    assert "missing.jsonl" in seen["stderr"]
    assert seen["exit_code"] == 2
    assert info["documents"] == ("d0",)


def test_047_links_and_globs_do_not_leave_the_root(tmp_path, folder):
    (tmp_path / "secret.txt").write_text("SECRET\n")
    (folder / "f.txt").write_text("public\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "dir").symlink_to("/")
    (folder / "inside.txt").symlink_to("f.txt")
    (tmp_path / "root-link").symlink_to(folder)
    runner = PlainRunner(tmp_path / "root-link")
    assert runner.run(parse("cat inside.txt")).stdout == b"public\n"
    assert runner.run(parse("rg -uuu SECRET")).stdout == b""
    assert runner.run(parse("grep -r SECRET .")).stdout == b""
    refused = ("cat link.txt", "rg . dir/etc", "rg -g '../**' x", "rg x /etc", "ls dir", "cat ../x")
    for command in refused:
        with pytest.raises(CommandError):
            runner.run(parse(command))
    runner.close()


def test_049_utf_16_with_a_byte_order_mark_is_decoded_by_rg(folder, run):
    (folder / "f.txt").write_bytes(bytes.fromhex("fffe7400650073007400"))
    assert run("rg -c test f.txt").stdout == b"1\n"


def test_050_line_ends_of_dos(folder, run):
    (folder / "f.txt").write_bytes(b"one\r\ntwo\r\n")
    for pattern in ("one$", "^one$"):
        assert run(f"rg --crlf '{pattern}' f.txt").stdout == b"one\r\n"
    env = small("one\r\ntwo\r\n")
    observation = ask(env, "jq -r .text corpus.jsonl")[0]
    assert observation["stdout"] == "one\ntwo\n\n"
    assert "\\r" not in json.dumps(observation)


def test_052_a_megabyte_on_one_line_is_capped_and_flagged():
    text = "ä" * 500_000 + " needle " + "ö" * 500_000
    for form in ("json", "text"):
        env = small(text, observation=form)
        env.reset()
        observation, *_ = env.step(shell("rg needle corpus.jsonl"))
        assert len(observation) <= env.rules.max_observation_chars
        assert "needle" in observation
        assert "\ufffd" not in observation
        assert "truncated" in observation
    seen, _ = ask(small(text), "rg needle corpus.jsonl")
    assert seen["truncated"]


def test_053_an_over_long_line_is_shown_around_the_match():
    seen, info = ask(
        small("x " * 2_500 + "the needle is here" + " y" * 2_500), "rg n..dle corpus.jsonl"
    )
    assert "the needle is here" in seen["stdout"]
    assert seen["stdout"].startswith('{"id": "d0", "title": "T0", "text": " … ')
    assert "[line cut, 1" in seen["stdout"]
    assert info["documents"] == ("d0",)


def test_055_an_unreadable_file_does_not_stop_the_search(folder, run):
    (folder / "a.txt").write_text("needle\n")
    (folder / "b.txt").write_text("needle\n")
    os.chmod(folder / "b.txt", 0)
    if active_fence() == "limits" and os.geteuid() == 0:
        pytest.skip("without bubblewrap root may read every file")
    result = run("rg needle .")
    assert result.stdout == b"./a.txt:needle\n"
    assert b"b.txt" in result.stderr


def test_056_files_in_any_encoding_do_not_stop_the_others(folder, run):
    for path in ENCODINGS.glob("*.txt"):
        shutil.copyfile(path, folder / path.name)
    (folder / "plain.txt").write_text("needle in plain text\n")
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) > 15
    for program in ("rg -a", "grep -ra"):
        assert b"needle" in run(f"{program} needle .").stdout
    for name in names:
        result = run(f"cat {name} | head -n 50")
        assert result.stdout == b"".join((folder / name).read_bytes().splitlines(True)[:50])
    found = run("rg -c . --no-heading --sort path").stdout.decode()
    assert found.count("\n") >= 15


def test_056_bytes_that_are_no_text_are_replaced_in_the_observation():
    seen, _ = ask(small("ä" * 20), "cut -b 1-38 corpus.jsonl")
    assert seen["stdout"].startswith('{"id": "d0", "title": "T0", "text": "')
    assert seen["stdout"].endswith("\ufffd\n")


def test_058_the_gold_answers_are_not_inside_the_root(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"id": "d0", "text": "public"}\n')
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "t", "question": "Who?", "answers": ["GOLD"], "evidence": ["d0"]}\n'
    )
    (tmp_path / ".hidden").write_text("GOLD")
    env = GrepEnv(tmp_path)
    for command in ("rg -uuu . .", "grep -ra . .", "find .", "ls -aR", "cat corpus.jsonl"):
        assert "GOLD" not in json.dumps(ask(env, command)[0])
    assert ask(env, "find . -type f")[0]["stdout"] == "./corpus.jsonl\n"
    assert ask(env, "cat tasks.jsonl")[0]["exit_code"] == 1


def test_026_040_071_documents_shown_twice_count_once_and_environments_do_not_mix():
    texts = ["The same text three times over, to be found by all."] * 3
    env = small(*texts, rewards=[EvidenceRecall()])
    env.reset()
    command = shell("cat corpus.jsonl corpus.jsonl")
    _, first, _, _, info = env.step(command)
    assert info["documents"] == ("d0", "d1", "d2")
    assert (first, env.step(command)[1]) == (1.0, 0.0)
    envs = [small(*texts, rewards=[EvidenceRecall()]) for _ in range(16)]
    for one in envs:
        one.reset(seed=0)
    assert [one.step(command)[1] for one in envs] == [1.0] * 16


def test_073_a_lone_surrogate_in_a_command_is_replaced():
    seen, info = ask(small("x"), "rg \ud83c corpus.jsonl")
    assert info["error"] is None
    assert seen["command"] == "rg \ufffd corpus.jsonl"
    json.dumps(seen).encode()
