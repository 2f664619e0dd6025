import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from seekgym.corpora import BackendError, ConfigurationError, Corpus, Document
from seekgym.corpora.shell import Limits, PlainRunner, active_fence, parse, sandbox
from seekgym.corpora.shell.programs import check_pipeline
from seekgym.corpora.shell.raw import CorpusRunner, default_runner, shown_documents
from seekgym.corpora.shell.sandbox import run

FENCES = ["limits", "bubblewrap"]


@pytest.fixture(params=FENCES)
def runner(request, tmp_path):
    if request.param == "bubblewrap" and active_fence() != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "f.txt").write_text("".join(f"line {number}\n" for number in range(5_000)))
    made = PlainRunner(tmp_path, fence=request.param, limits=Limits(wall_s=5.0))
    yield made
    made.close()


def output(runner, command):
    return runner.run(parse(command)).stdout.decode()


def test_a_pipeline_gives_output_complaints_and_the_last_exit_code(runner):
    result = runner.run(parse("cat f.txt missing | grep -c 'line 1'"))
    assert result.stdout == b"1111\n"
    assert result.stderr == b"cat: missing: No such file or directory\n"
    assert (result.exit_code, result.timed_out, result.truncated) == (0, False, False)
    assert runner.run(parse("grep nothing f.txt")).exit_code == 1
    assert runner.run(parse("rg '(' f.txt")).exit_code == 2


def test_a_first_program_without_a_file_reads_nothing(runner):
    assert output(runner, "cat") == ""
    assert output(runner, "wc -l") == "0\n"


def test_what_is_fed_reaches_the_first_program(runner):
    fed = b"".join(b"row %d\n" % number for number in range(200_000))
    commands = check_pipeline(parse("grep 9 | tail -n 1"), runner.root)
    assert runner.run_commands(commands, fed).stdout == b"row 199999\n"
    commands = check_pipeline(parse("head -n 1"), runner.root)
    assert runner.run_commands(commands, fed).stdout == b"row 0\n"
    assert runner.run_commands(check_pipeline(parse("wc -c"), runner.root), b"").stdout == b"0\n"


def test_output_is_cut_at_the_limit(tmp_path):
    (tmp_path / "f.txt").write_text("x" * 100_000)
    runner = PlainRunner(tmp_path, limits=Limits(max_output_bytes=1_000))
    result = runner.run(parse("cat f.txt"))
    assert (len(result.stdout), result.truncated, result.exit_code) == (1_000, True, 141)
    exact = runner.run(parse("head -c 1000 f.txt"))
    assert (len(exact.stdout), exact.truncated, exact.exit_code) == (1_000, False, 0)
    runner.close()


def test_a_worker_that_died_is_replaced(runner):
    assert output(runner, "head -1 f.txt") == "line 0\n"
    [worker] = runner._workers._idle
    os.killpg(worker._process.pid, signal.SIGKILL)
    assert output(runner, "head -1 f.txt") == "line 0\n"


def test_a_worker_that_dies_in_the_middle_is_asked_again(runner):
    assert output(runner, "head -1 f.txt") == "line 0\n"
    [worker] = runner._workers._idle
    killer = threading.Timer(0.3, os.killpg, [worker._process.pid, signal.SIGKILL])
    killer.start()
    start = time.monotonic()
    result = runner.run(parse("awk 'BEGIN{while(i++<3e6) x=x+i; print \"done\"}'"))
    assert result.stdout == b"done\n"
    assert time.monotonic() - start < 10
    killer.join()


def test_a_fence_that_cannot_be_put_up_is_a_backend_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_WORKER", tmp_path / "missing.py")
    runner = PlainRunner(tmp_path)
    with pytest.raises(BackendError, match="fence"):
        runner.run(parse("ls"))


def test_threads_get_what_one_gets(runner):
    commands = [f"grep -n 'line {number}$' f.txt" for number in range(40)]
    expected = [output(runner, command) for command in commands]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda command: output(runner, command), commands))
    assert found == expected


def test_a_forked_process_has_workers_of_its_own(runner):
    assert output(runner, "head -1 f.txt") == "line 0\n"
    pid = os.fork()
    if pid == 0:
        is_right = output(runner, "tail -1 f.txt") == "line 4999\n"
        runner.close()
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert output(runner, "head -1 f.txt") == "line 0\n"


def test_a_pickle_runs_again(runner):
    output(runner, "ls")
    other = pickle.loads(pickle.dumps(runner))
    assert output(other, "head -1 f.txt") == "line 0\n"
    other.close()


def test_a_runner_leaves_no_process_behind(tmp_path):
    runner = PlainRunner(tmp_path)
    runner.run(parse("ls"))
    [worker] = runner._workers._idle
    pid = worker._process.pid
    runner.close()
    deadline = time.monotonic() + 5  # who inherits the killed ones may take a moment to see them
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(pid, 0)


def test_a_worker_ends_when_its_owner_is_gone(runner):
    output(runner, "ls")
    [worker] = runner._workers._idle
    worker._process.stdin.close()
    assert worker._process.wait(5) == 0


def test_arguments_are_checked(tmp_path):
    with pytest.raises(ConfigurationError, match="not a folder"):
        PlainRunner(tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="unknown fence"):
        PlainRunner(tmp_path, fence="moat")


def test_without_bubblewrap_the_limits_are_the_fence(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    assert active_fence.__wrapped__() == "limits"
    monkeypatch.setattr(sandbox, "active_fence", lambda: "limits")
    with pytest.raises(ConfigurationError, match="does not work here"):
        PlainRunner(tmp_path, fence="bubblewrap")
    (tmp_path / "f.txt").write_text("x\n")
    assert run(parse("cat f.txt"), tmp_path).stdout == b"x\n"


def corpus(*texts):
    documents = [Document(f"d{number}", f"T{number}", text) for number, text in enumerate(texts)]
    return Corpus.from_documents(documents)


def test_a_corpus_is_written_once_and_goes_with_its_runner():
    made = CorpusRunner(corpus("α\r\nβ\u2028γ", "b"))
    folder = made.path.parent
    assert output(made, "wc -l corpus.jsonl") == "2 corpus.jsonl\n"
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.jsonl"]
    assert made.path.stat().st_mode & 0o777 == 0o444
    del made
    assert not folder.exists()


def test_a_corpus_in_a_folder_is_used_again(tmp_path):
    first = CorpusRunner(corpus("a"), folder=str(tmp_path))
    second = CorpusRunner(corpus("a"), folder=str(tmp_path))
    assert first.path == second.path
    assert first.path.stat().st_ino == second.path.stat().st_ino
    assert CorpusRunner(corpus("b"), folder=str(tmp_path)).path != first.path
    one = corpus("a")
    assert default_runner(one) is default_runner(one)
    assert output(pickle.loads(pickle.dumps(second)), "grep -c a corpus.jsonl") == "1\n"


def test_documents_count_as_shown_when_their_text_is():
    long = "It was a long and winding road that led to the door of the house."
    made = CorpusRunner(corpus(long, "short", long.replace("door", "gate")))

    def shown(command):
        return shown_documents(output(made, command).split("\n"), made)

    assert shown("cat corpus.jsonl") == ("d0", "d1", "d2")
    assert shown("grep -n door corpus.jsonl") == ("d0",)
    assert shown("sort -r corpus.jsonl | uniq -c") == ("d2", "d1", "d0")
    assert shown("cut -c 1-90 corpus.jsonl") == ("d0", "d1", "d2")
    assert shown("cut -c 1-60 corpus.jsonl") == ("d1",)
    assert shown("grep -o 'id\": \"d[0-9]*' corpus.jsonl") == ()
    assert (
        shown(
            'sed \'s/text": ".*/text": "made up, and long enough to count as text/\' corpus.jsonl'
        )
        == ()
    )
    assert shown("grep -o 'long and.*door of the house' corpus.jsonl") == ("d0",)
    assert shown("grep -no 'long and.*door of the house' corpus.jsonl") == ("d0",)
    assert shown("grep -o 'was a long and winding road that led to' corpus.jsonl") == ()
