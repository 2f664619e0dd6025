"""The allow-list: every option in it exists, all else is refused, and no word is read twice."""

import re
import subprocess

import pytest

from seekgym.corpora import CommandError
from seekgym.corpora.shell import PlainRunner, Stage, parse
from seekgym.corpora.shell.programs import PROGRAMS, check_pipeline, find_program, read_arguments
from seekgym.corpora.shell.scripts import check_awk, check_jq, check_sed

LINES = ["one apple", "two  pears", "three, apples", "-v dash", "four"]


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "f.txt").write_text("\n".join(LINES) + "\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "g.txt").write_text("five apples\n")
    made = PlainRunner(folder)
    yield made
    made.close()


def checked(command, folder):
    return [list(stage.arguments) for stage in check_pipeline(parse(command), folder)]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "find"])
def test_every_option_of_the_table_is_one_of_the_program(name, tmp_path):
    program = PROGRAMS[name]
    path = find_program(program.binary or name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    values = {"NUMBER": "1", "COUNT": "1", "LIST": "1", "KEY": "1", "ASSIGNMENT": "a=1"}
    for option in set(program.options.values()):
        choice = option.kind.partition("|")[0] if option.kind.islower() else "a"
        value = values.get(option.kind, choice) if option.takes_value else None
        for spelling in filter(None, (option.short, option.long)):
            words = (spelling,) if value is None else (spelling, value)
            done = subprocess.run(
                [path, *program.fixed, *words], input=b"", capture_output=True, cwd=tmp_path
            )
            complaint = rb"(unrecognized|invalid|unknown|unexpected) ?(option|argument)|Found arg"
            assert not re.search(complaint, done.stderr, re.IGNORECASE), (words, done.stderr)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rg -in apple f.txt", "1:one apple\n3:three, apples\n"),
        ("rg -F -e -v f.txt", "-v dash\n"),
        ("rg -- -v f.txt", "-v dash\n"),
        ("grep -e -v f.txt", "-v dash\n"),
        ("grep -- -v f.txt", "-v dash\n"),
        ("grep --regexp=-v f.txt", "-v dash\n"),
        ("grep -nm1 apple f.txt", "1:one apple\n"),
        ("grep -rh apples | sort", "five apples\nthree, apples\n"),
        ("grep -c apple f.txt", "2\n"),
        ("grep -1 -n four f.txt", "4--v dash\n5:four\n"),
        ("head -2 f.txt", "one apple\ntwo  pears\n"),
        ("head -n -4 f.txt", "one apple\n"),
        ("tail -n +5 f.txt", "four\n"),
        ("tail -1 f.txt | tr a-z A-Z", "FOUR\n"),
        ("cut -d ' ' -f 1 f.txt | sort -r | head -n 2", "two\nthree,\n"),
        ("sort -k2,2 -t ' ' f.txt | head -1", "four\n"),
        ("cat f.txt | uniq -c | wc -l", "5\n"),
        ("cat f.txt | tr -s ' ' | sed -n 2p", "two pears\n"),
        ("sed -n '2,3p;5q' f.txt", "two  pears\nthree, apples\n"),
        ("sed -E 's/(one|two) +(.*)/\\2 \\1/;3,$d' f.txt", "apple one\npears two\n"),
        ("sed '$!d' f.txt", "four\n"),
        ("sed -n '/two/{s/  / /;p}' f.txt", "two pears\n"),
        ("sed -n -e 1p -e '$=' f.txt", "one apple\n5\n"),
        ("awk -F' ' '{print $1}' f.txt | head -1", "one\n"),
        ("awk -v n=2 'NR==n' f.txt", "two  pears\n"),
        ("nl -b a f.txt | tail -n 1", "     5\tfour\n"),
        ("tac f.txt | head -n 1", "four\n"),
        ("ls -1", "f.txt\nsub\n"),
        ("find . -name '*.txt' -type f | sort", "./f.txt\n./sub/g.txt\n"),
        ("find -maxdepth 1 -name f.txt", "./f.txt\n"),
        ("rg -g '*.txt' --files | sort", "f.txt\nsub/g.txt\n"),
        ("cat sub/g.txt - ", "five apples\n"),
        ("jq -nr '\"env.include\"'", "env.include\n"),
    ],
)
def test_what_is_allowed_does_what_it_does(command, expected, runner):
    result = runner.run(parse(command))
    assert (result.stdout.decode(), result.stderr) == (expected, b"")


@pytest.mark.parametrize(
    "command",
    [
        "rg --pre=cat x f.txt",
        "rg --pre cat x",
        "rg --pre-glob '*' x",
        "rg -f f.txt",
        "rg --file=f.txt",
        "rg -z x",
        "rg --search-zip x",
        "rg -L x",
        "rg --follow x",
        "rg --ignore-file f.txt x",
        "rg --hostname-bin=id x",
        "rg --stats x",
        "rg --json x",
        "rg --regex x f.txt",
        "rg -ifx x",
        "rg -g '../**' x",
        "rg x --type-add 'a:b'",
        "grep -f f.txt",
        "grep --file f.txt",
        "grep -R x .",
        "grep --dereference-recursive x .",
        "grep --exclude-from=f.txt x",
        "grep -D read x f.txt",
        "sort -o f.txt f.txt",
        "sort --output=f.txt",
        "sort -T sub f.txt",
        "sort --compress-program=cat f.txt",
        "sort --files0-from=f.txt",
        "sort -R f.txt",
        "sort -S 99G f.txt",
        "sort --random-source=f.txt f.txt",
        "sort -k 1R f.txt",
        "wc --files0-from=f.txt",
        "tail -f f.txt",
        "tail -F f.txt",
        "tail --follow f.txt",
        "tail --pid=1 f.txt",
        "tail -fn1 f.txt",
        "uniq f.txt g.txt",
        "sed -i 1d f.txt",
        "sed -ni 1d f.txt",
        "sed -f f.txt",
        "sed --in-place=x 1d f.txt",
        "awk -f f.txt",
        "awk -i inplace 1 f.txt",
        "awk -l filefuncs 1",
        "awk -E f.txt",
        "awk --include=x 1",
        "awk -o- 1",
        "mawk 1 f.txt",
        "ls -l",
        "ls --time-style=full-iso",
        "ls -L",
        "find . -exec id ';'",
        "find . -execdir id ';'",
        "find . -ok id ';'",
        "find . -delete",
        "find . -fprint f",
        "find . -fprintf f x",
        "find . -fls f",
        "find . -newer f.txt",
        "find . -printf '%T@'",
        "find -L .",
        "find . -follow",
        "find -files0-from f.txt",
        "find . -type l",
        "jq -f f.txt",
        "jq --slurpfile a f.txt .",
        "jq --rawfile a f.txt .",
        "jq --argfile a f.txt .",
        "jq -L . .",
        "cat f.txt | tac",
        "xargs rg",
        "tee f",
        "sh -c id",
        "/bin/cat f.txt",
        "./f.txt",
        "''",
        "env",
        "PATH=x rg y",
    ],
)
def test_what_runs_writes_follows_or_reads_more_is_refused(command, runner):
    with pytest.raises(CommandError) as found:
        runner.run(parse(command))
    assert found.value.code in ("option", "program", "operand")


@pytest.mark.parametrize(
    "script",
    [
        "w f",
        "1w f",
        "s/a/b/w f",
        "s/a/b/e",
        "s/a/b/ge",
        "e id",
        "e",
        "r f.txt",
        "R f.txt",
        "W f",
        "1r f",
        "a text",
        "i text",
        "c text",
        ":a",
        "b",
        "ta",
        "F",
        "v",
        "1,w f",
        "{w f",
        "{p",
        "p}",
        "s/a/b",
        "y/a/b",
        "s/[/]/b/;w f",
        "s,a,b,w f",
        "\\,a,w f",
        "s\\a\\b\\w",
        "/x/w f",
        "0~4w f",
        "$!w f",
        "p;w f",
        "pw f",
        "s/a/b/;;e",
        "#n",
        "=w f",
        "q5w",
        "l 1 w f",
    ],
)
def test_sed_scripts_that_do_more_than_edit_are_refused(script):
    with pytest.raises(CommandError, match="sed"):
        check_sed(script)


@pytest.mark.parametrize(
    "script",
    ["1p", "$d", "1,5p", "2~3p", "/a/,/b/d", "/a/,+2p", r"\,a,p", "s/a/b/g;s/c/d/2p", "y/ab/cd/",
     "1!G;h;$!d", "n;d", "$=", "5q", "s/[/]/x/", "s/[]/]/x/", "/[[:space:]]/d", "{p;p}", "0,/x/Id",
     "1{s/a/b/;p}", "N;P;D", "s|a|b|I"],
)  # fmt: skip
def test_sed_scripts_that_edit_are_taken_as_sed_takes_them(script, runner):
    check_sed(script)
    assert runner.run(parse(f"sed '{script}' f.txt")).stderr == b""


@pytest.mark.parametrize(
    "program",
    ['BEGIN{system("id")}', '"id"|getline', 'getline x < "f"', '@include "f"', '@load "f"',
     'BEGIN{f="sys" "tem"; @f("id")}', "BEGIN{ARGV[1]=1}", "BEGIN{print ENVIRON[1]}",
     "BEGIN{print PROCINFO[1]}", "BEGIN{print systime()}", "BEGIN{srand()}",
     'BEGIN{SYMTAB["ARGV"]}', '@ include "f"'],
)  # fmt: skip
def test_awk_programs_that_do_more_are_refused(program):
    with pytest.raises(CommandError, match="awk"):
        check_awk(program)


@pytest.mark.parametrize(
    "program",
    ["env", "$ENV.PATH", 'import "a" as a; .', 'include "a"; .', '"x"|modulemeta', "now",
     '"\\(env)"', "get_search_list"],
)  # fmt: skip
def test_jq_filters_that_do_more_are_refused(program):
    with pytest.raises(CommandError, match="jq"):
        check_jq(program)


def test_a_program_gets_its_words_in_one_form(tmp_path):
    [words] = checked("rg -e --pre=x -im 3 -- -a", tmp_path)
    assert words[-5:] == ["--regexp=--pre=x", "--ignore-case", "--max-count=3", "--", "-a"]
    [words] = checked("sort -t '' -nr", tmp_path)
    expected = ["--field-separator=", "--numeric-sort", "--reverse", "--"]
    assert words[3:] == expected


def test_arguments_can_be_read_without_paths():
    arguments = read_arguments(Stage("rg", ("-iF", "a b", "-e", "c", "f")))
    assert arguments.has("--fixed-strings")
    assert arguments.values("--regexp") == ["c"]
    assert arguments.operands == ("a b", "f")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("rg --pre=x y", "'--pre' is not allowed.*begins with '-' goes after '-e'"),
        ("rg -m many y", "--max-count needs a number, not 'many'"),
        ("rg -m", "needs a value"),
        ("rg --hidden=1 y", "takes no value"),
        ("rg", "the pattern or script is missing"),
        ("sed", "the pattern or script is missing"),
        ("vim f", "the program 'vim' is not allowed; allowed are rg grep"),
        ("cat /etc/passwd", "relative to the corpus folder"),
        ("find . -frob", "-frob"),
        ("find . -type x", "needs another value"),
        ("tr a b c", "tr takes at most 0 files"),
        ("cat ''", "a path is empty"),
    ],
)
def test_a_refusal_says_what_and_what_else(command, words, tmp_path):
    with pytest.raises(CommandError, match=words):
        check_pipeline(parse(command), tmp_path)
