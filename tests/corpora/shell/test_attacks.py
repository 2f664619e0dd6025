"""Attacks on the fence. None succeeds, behind bubblewrap or without it.

What success would be: text from outside the corpus or from the environment in the output, a file
made or changed, a connection, a process left over, or more time, memory or output than allowed.
"""

import contextlib
import itertools
import os
import re
import shlex
import socket
import threading
import time
from pathlib import Path

import pytest

from seekgym.corpora import CommandError
from seekgym.corpora.shell import Limits, PlainRunner, active_fence, parse
from seekgym.corpora.shell.programs import Command

SECRET = "SECRET-7f3a9"
LIMITS = Limits(wall_s=0.6, cpu_s=1, memory_bytes=1 << 28, max_output_bytes=1 << 16)
FENCES = ["limits", "bubblewrap"]


class Target:
    """A corpus with traps in and around it, and a runner over it."""

    def __init__(self, folder, fence):
        self.folder = folder
        self.root = folder / "corpus"
        self.root.mkdir()
        (self.root / "corpus.jsonl").write_text('{"id": "d1", "text": "plain"}\n' * 50)
        (self.root / "a.txt").write_text("a" * 40 + "!\n" + "x" * 40 + "=" * 40 + "\n")
        (folder / "secret.txt").write_text(f"{SECRET}\n")
        (folder / "tasks.jsonl").write_text(f'{{"answers": ["{SECRET}"]}}\n')
        (folder / "corpus-evil").mkdir()
        (folder / "corpus-evil" / "secret.txt").write_text(f"{SECRET}\n")
        for name, place in (
            ("link.txt", folder / "secret.txt"),
            ("up", folder),
            ("slash", "/"),
            ("proc", "/proc"),
            ("relative", "../secret.txt"),
            ("zero", "/dev/zero"),
            ("chain", "link.txt"),
            ("inside.txt", "a.txt"),
        ):
            (self.root / name).symlink_to(place)
        os.mkfifo(self.root / "fifo")
        self.before = self.state()
        self.runner = PlainRunner(self.root, limits=LIMITS, fence=fence)

    def state(self):
        return sorted(
            (str(path), path.lstat().st_mtime_ns, path.lstat().st_size)
            for path in self.folder.rglob("*")
        )

    def attack(self, command):
        """Run it as an agent's command and return the result, or None if it was refused."""
        start = time.monotonic()
        try:
            result = self.runner.run(parse(command))
        except CommandError as error:
            self.check_text(error.code.encode() + error.reason.encode())
            return None
        assert time.monotonic() - start < LIMITS.wall_s + 3
        self.check_text(result.stdout + result.stderr)
        assert len(result.stdout) <= LIMITS.max_output_bytes
        assert len(result.stderr) <= LIMITS.max_error_bytes
        return result

    def check_text(self, text):
        assert not re.search(rb"%b|root:|uid=" % SECRET.encode(), text)

    def check_unharmed(self):
        assert self.state() == self.before


@pytest.fixture(scope="module", params=FENCES)
def target(request, tmp_path_factory):
    if request.param == "bubblewrap" and active_fence() != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    os.environ["SEEKGYM_TOKEN"] = SECRET
    made = Target(tmp_path_factory.mktemp("target"), request.param)
    yield made
    made.check_unharmed()
    made.runner.close()
    del os.environ["SEEKGYM_TOKEN"]


def forms_of(payload):
    """Return commands that carry a payload to every place of the grammar."""
    quoted = shlex.quote(payload)
    return [
        payload,
        f"rg {payload} corpus.jsonl",
        f"head -n 1 corpus.jsonl {payload}",
        f"rg -e {quoted} corpus.jsonl",
        f"grep -c -F -- {quoted} corpus.jsonl",
        f'grep "{payload}" corpus.jsonl',
        f"cat {quoted}",
        f"sed -n {quoted} corpus.jsonl",
        f"awk {quoted} a.txt",
        f"sort -t {quoted} a.txt",
    ]


def test_payloads_of_command_injection_do_nothing(target, cases):
    payloads = [row["payload"] for row in cases("command_injection.jsonl")]
    attacks = [form for payload in payloads for form in forms_of(payload)[:3]]
    attacks += [form for payload in payloads[::12] for form in forms_of(payload)[3:]]
    assert len(attacks) > 1_000
    refused = sum(target.attack(attack) is None for attack in attacks)
    assert refused > 900
    target.check_unharmed()


PATHS = (
    "/etc/passwd ../secret.txt ../corpus-evil/secret.txt up/secret.txt link.txt chain relative "
    "slash/etc/passwd proc/self/environ proc/1/environ proc/self/root/etc/passwd "
    "/proc/self/environ /dev/zero zero /dev/stdin /dev/fd/0 fifo ./../secret.txt "
    "sub/../../secret.txt inside.txt/../../secret.txt //etc/passwd up/tasks.jsonl ../tasks.jsonl "
    "/corpus/../etc/passwd /worker.py up slash proc .. / /dev/tcp/127.0.0.1/9 ~/x ~root/x"
).split()
READERS = [
    "cat {}",
    "head -n 3 {}",
    "tail -n 3 -- {}",
    "rg . {}",
    "rg --files {}",
    "grep -r . {}",
    "grep -a SECRET a.txt {}",
    "sed -n p {}",
    "awk 1 {}",
    "sort {}",
    "uniq {}",
    "wc {}",
    "nl {}",
    "tac {}",
    "cut -c 1-9 {}",
    "ls -R {}",
    "find {}",
    "jq -R . {}",
]


def test_no_path_leads_out(target):
    attacks = [reader.format(path) for reader, path in itertools.product(READERS, PATHS)]
    assert len(attacks) > 500
    assert [attack for attack in attacks if target.attack(attack) is not None] == []


@pytest.mark.parametrize(
    "command",
    [
        "rg -uuu --hidden .",
        "rg -uuua SECRET .",
        "grep -r SECRET",
        "grep -r -a . .",
        "find . -name '*'",
        "find . -path '*secret*'",
        "ls -R .",
        "ls -RaF",
        "rg -g '../*' x",
        "rg -g '/etc/*' x",
        "rg --files -g '**'",
        "find . -regex '.*'",
        "rg -uuu --no-ignore --sort none SECRET",
    ],
)
def test_a_search_of_the_folder_stays_in_it(target, command):
    result = target.attack(command)
    if result is not None:
        assert b"secret" not in result.stdout


OPTIONS = [
    "rg --pre={p} x", "rg --pre {p} x", "rg '--pre={p}' x corpus.jsonl", "rg -f{p}", "rg -f {p}",
    "rg --file={p}", "rg --ignore-file={p} x", "rg --search-zip x", "rg --hostname-bin {p} x",
    "rg --config-path {p} x", "rg -r x --pre={p} y", "rg x -- --pre={p} ../secret.txt",
    "grep -f {p} corpus.jsonl", "grep -f{p} corpus.jsonl", "grep --file={p} corpus.jsonl",
    "grep -R . .", "grep --exclude-from={p} x", "grep --fil={p} x", "grep -ef{p} ../secret.txt",
    "sort -o {p} a.txt", "sort -o{p} a.txt", "sort --output {p} a.txt", "sort -T {p} a.txt",
    "sort --compress-program={p} a.txt", "sort --compress-prog={p} a.txt",
    "sort --files0-from={p}", "sort --random-source={p} a.txt", "sort -uo{p} a.txt",
    "uniq a.txt {p}", "uniq a.txt out.txt", "wc --files0-from={p}", "wc --files0={p}",
    "tail -f a.txt", "tail -F a.txt", "tail --follow=name a.txt", "tail --retry a.txt",
    "tail -n 1 --pid=1 a.txt", "tail -1f a.txt", "sed -i s/a/b/ a.txt", "sed -i.bak 1d a.txt",
    "sed --in-place 1d a.txt", "sed -n '1w {p}' a.txt", "sed 's/a/b/w {p}' a.txt",
    "sed 's/a/id/e' a.txt", "sed '1e id' a.txt", "sed e a.txt", "sed 'r {p}' a.txt",
    "sed '1R {p}' a.txt", "sed 'W {p}' a.txt", "sed -f {p} a.txt", "sed --file={p} a.txt",
    "sed -e 1d -e 'w out' a.txt", "sed 's/[/]/x/;w out' a.txt", "sed --debug 1p a.txt",
    "awk 'BEGIN{{system(\"id\")}}'", "awk 'BEGIN{{\"id\"|getline x; print x}}'",
    "awk 'BEGIN{{while((getline l < \"{p}\")>0) print l}}'", "awk '{{print > \"out\"}}' a.txt",
    "awk '{{print >> \"out\"}}' a.txt", "awk '{{print | \"tee out\"}}' a.txt",
    "awk '{{print |& \"cat\"}}' a.txt", "awk '@include \"{p}\"'", "awk '@load \"filefuncs\"'",
    "awk 'BEGIN{{f=\"sys\" \"tem\"; @f(\"id\")}}'", "awk 'BEGIN{{ARGV[1]=\"{p}\";ARGC=2}}1'",
    "awk 'BEGIN{{SYMTAB[\"ARGV\"]}}1' a.txt", "awk -f {p} a.txt", "awk -E {p}", "awk -i {p} 1",
    "awk -l readdir 1 .", "awk -v x=1 -f {p}", "awk --source 1 a.txt", "awk --profile=out 1 a.txt",
    "awk -pout 1 a.txt", "awk -dout 1 a.txt", "awk --dump-variables 1 a.txt", "awk -D 1 a.txt",
    "awk 'BEGIN{{print ENVIRON[\"SEEKGYM_TOKEN\"]}}'", "awk 'BEGIN{{for(k in ENVIRON)print k}}'",
    "awk 'BEGIN{{s=\"/inet/tcp/0/127.0.0.1/9\"; print \"x\" |& s}}'", "gawk -f {p}",
    "gawk 'BEGIN{{printf \"x\" > \"/dev/stdout\"; system(\"id\")}}'",
    "mawk 'BEGIN{{system(\"id\")}}'",
    "find . -exec cat {p} ';'", "find . -exec cat {p} '+'", "find . -execdir id ';'",
    "find . -ok id ';'", "find . -okdir id ';'", "find . -delete", "find . -fprint out",
    "find . -fprint0 out", "find . -fprintf out x", "find . -fls out", "find . -newer {p}",
    "find -L . -name '*secret*'", "find -H up", "find -L up/.", "find . -follow",
    "find -files0-from {p}", "find . -samefile {p}", "find . -lname '*'", "find -D exec .",
    "find -O3 / -name x", "find . -maxdepth 1 / -name passwd", "find . -ls",
    "jq -n env", "jq -n '$ENV'", "jq -n '$ENV.SEEKGYM_TOKEN'", "jq -n '\"\\(env)\"'",
    "jq -f {p} a.txt", "jq --from-file {p} a.txt", "jq -L .. 'import \"x\" as x; .'",
    "jq -n 'import \"../secret\" as $x; $x'", "jq -n 'include \"../secret\"; .'",
    "jq --slurpfile x {p} -n '$x'", "jq --rawfile x {p} -n '$x'", "jq --argfile x {p} -n '$x'",
    "jq -n '\"/etc/passwd\"|modulemeta'", "jq -n --args '$ARGS' {p}", "jq -n 'input' {p}",
    "ls -L slash", "ls -H slash", "ls --hide x slash", "ls -l up/", "cat --help {p}",
    "nl -b p. {p}", "tac -s x {p}", "cut -f1 {p}", "tr a b < {p}", "tr a b {p}",
    "head --bytes=9 {p}", "head -c 9 - {p}", "tee out", "dd if={p}", "xargs cat", "env", "printenv",
    "sh -c id", "bash", "busybox sh", "python3 -c 'print(1)'", "perl -e 1", "curl localhost",
    "nc 127.0.0.1 9", "wget localhost", "ssh localhost", "strace ls", "bwrap id", "nsenter -t 1 id",
    "kill -9 1", "timeout 9 id", "nohup id", "exec id", "eval id", "source {p}", ". {p}",
    "command id", "builtin id", "time id", "! id", "if id", "coproc id", "function f", "[[ -f x ]]",
    "zgrep x {p}", "egrep x {p}", "fgrep -f {p} a.txt", "less {p}", "more {p}", "vi {p}",
    "split a.txt", "csplit a.txt 1", "install a.txt b", "cp a.txt b", "mv a.txt b", "rm a.txt",
    "ln -s / x", "touch x", "mkdir x", "chmod 777 a.txt", "truncate -s 0 a.txt", "tar cf x .",
]  # fmt: skip


@pytest.mark.parametrize("place", ["/etc/passwd", "../secret.txt"])
def test_no_option_script_or_program_does_more(target, place):
    attacks = [option.format(p=place) for option in OPTIONS]
    assert len(attacks) > 180
    for attack in attacks:
        target.attack(attack)
    target.check_unharmed()


LARGE = [
    "awk 'BEGIN{while(1);}'",
    "awk 'BEGIN{while(1) print \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}'",
    "awk 'BEGIN{while(1) a[i++]=i i i i}'",
    "awk 'BEGIN{s=\"x\"; while(1) s=s s}'",
    'awk \'BEGIN{printf "%2000000000s", "x"}\'',
    "awk 'BEGIN{while(1) print \"x\"}' | sort",
    "awk 'BEGIN{while(1) printf \"x\"}' | sed s/x/yyyy/g",
    "awk 'BEGIN{while(1) print \"x\"}' | grep -c x",
    'awk \'BEGIN{while(1) print "x" > "/dev/stderr"}\'',
    "sed -n 'H;x;G;G;x;$p' corpus.jsonl",
    "nl -w 999999999 corpus.jsonl",
    "jq -n '[range(1e12)]'",
    "jq -n 'range(1e18)'",
    "jq -n 'def f: f; f'",
    "jq -n 'def f: [f,f]; f'",
    "jq -n '\"x\" * 4000000000'",
    "rg '(((a{1000}){1000}){1000})' a.txt",
    "grep -E '(((a{1,255}){1,255}){1,255}){1,255}' a.txt",
    "grep -E '(a|aa)*(a|aa)*(a|aa)*\\1x' a.txt",
    "grep -P '^(a+)+$' a.txt",
    "grep -P '(x+x+)+y' a.txt",
    "rg -P '^(a+)+$' a.txt",
    "rg -P '(x+x+)+y' a.txt",
    "sed -E 's/(a*)*(a*)*\\1\\2!!//' a.txt",
    "awk '/(a*)*(a*)*b/' a.txt",
    "jq -R 'test(\"^(a+)+$\")' a.txt",
]


@pytest.mark.parametrize("command", LARGE)
def test_time_memory_and_output_are_bounded(target, command):
    target.attack(command)
    assert programs_left() == []


def test_catastrophic_patterns_are_bounded(target, cases):
    programs = ("grep -P", "grep -E", "rg", "rg -P")
    for row in cases("redos.jsonl"):
        for program in programs:
            target.attack(f"{program} -e {shlex.quote(row['pattern'])} a.txt corpus.jsonl")


def test_a_gigabyte_of_output_is_cut_at_the_limit(target):
    result = target.attack("awk 'BEGIN{for(i=0;i<16e6;i++) print \"" + "x" * 64 + "\"}'")
    assert result.truncated
    assert len(result.stdout) == LIMITS.max_output_bytes
    assert set(result.stdout) == {ord("x"), ord("\n")}


def test_memory_is_bounded(target):
    result = target.attack("awk 'BEGIN{s=\"x\"; while(1) s=s s}'")
    assert result.exit_code != 0
    assert b"memory" in result.stderr


def test_a_time_out_keeps_what_was_written(target):
    result = target.attack("awk 'BEGIN{print \"early\"; fflush(); while(1);}'")
    assert result.timed_out
    assert result.stdout == b"early\n"
    assert result.exit_code == 124


def test_nothing_can_be_written_even_past_the_allow_list(target, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("a\n")
    runner = PlainRunner(tmp_path / "corpus", limits=LIMITS, fence=target.runner.fence)
    for place in ("out", "../out", str(tmp_path / "out"), "a.txt"):
        command = Command("/usr/bin/sort", ("sort", "-o", place, "a.txt"))
        assert runner.run_commands([command]).exit_code != 0
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 0]
    if runner.fence == "bubblewrap":
        assert [path.name for path in made] == ["a.txt"]
    assert made in ([], [tmp_path / "corpus" / "a.txt"])  # by limits alone: emptied at worst
    runner.close()


def test_bubblewrap_holds_even_past_the_allow_list(target):
    if target.runner.fence != "bubblewrap":
        pytest.skip("this is about bubblewrap")

    def run(*words):
        return target.runner.run_commands([Command(f"/usr/bin/{words[0]}", words)])

    assert run("cat", "/etc/passwd").stdout == b""
    assert run("cat", str(target.folder / "secret.txt")).stdout == b""
    assert run("cat", "up/secret.txt").stdout == b""
    assert run("touch", "a.txt").exit_code != 0
    assert run("touch", "/usr/x").exit_code != 0
    assert run("env").stdout.decode().split() == [
        "LC_ALL=C.UTF-8", "HOME=/nonexistent", "PATH=/nonexistent", "PWD=/corpus"
    ]  # fmt: skip
    assert run("ls", "/").stdout.split() == run("ls", "/").stdout.split()
    assert b"tmp" not in run("ls", "/").stdout
    assert run("ls", "/proc").stdout == b""


def test_there_is_no_network(target):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.settimeout(1.0)
        calls = []

        def accept():
            with contextlib.suppress(TimeoutError):
                calls.append(server.accept())

        thread = threading.Thread(target=accept)
        thread.start()
        place = f"/inet/tcp/0/127.0.0.1/{port}"
        for command in (
            f'awk \'BEGIN{{print "x" |& "{place}"}}\'',
            f'awk \'BEGIN{{print "x" > "/dev/tcp/127.0.0.1/{port}"}}\'',
            f"cat /dev/tcp/127.0.0.1/{port}",
            f"awk 1 {place}",
        ):
            target.attack(command)
        thread.join()
    assert calls == []


def programs_left():
    """Return the programs that run in sessions of this process's workers, beside the workers."""
    processes = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            processes[pid] = (stat[1], stat[3], words)
    workers = {pid for pid, (parent, *_) in processes.items() if parent == str(os.getpid())}
    assert any(b"worker.py" in processes[pid][2] for pid in workers)
    return [
        words
        for _, session, words in processes.values()
        if session in workers and words and b"worker.py" not in words
    ]
