"""What a stage of rg or grep searches for, where, and whether blocks can stand for the whole.

An allow-list: a search is described only if every option is one whose effect on a line does not
depend on lines far from it, or is made up for (``needs_numbers``: lines that are left out are
replaced by empty ones, which no pattern with a required literal can match).
"""

from dataclasses import dataclass

from .literals import NOTHING_REQUIRED, Requirement, any_of
from .options import Arguments
from .parse import Stage
from .patterns import Dialect, required_literals
from .programs import PROGRAMS, read_arguments

__all__ = ["Search", "describe_search", "reads_only_pipe"]


@dataclass(frozen=True, slots=True)
class Search:
    """Hold what a search needs of the files.

    Attributes:
        program: rg or grep.
        requirement: What every line that matches must contain.
        paths: The files and folders it names.
        is_recursive: Whether folders are searched through.
        needs_numbers: Whether what it writes depends on how many lines come before.
        is_inverted: Whether it counts the lines that do not match.
        context: How many lines around a match it may write.
    """

    program: str
    requirement: Requirement
    paths: tuple[str, ...]
    is_recursive: bool
    needs_numbers: bool
    is_inverted: bool
    context: int


# Options that change how a line is matched or written, and which files are searched.
_PLAIN = {
    "rg": """
        --color --no-column --context-separator --crlf --no-crlf --field-context-separator
        --field-match-separator --files-with-matches --files-without-match --fixed-strings --glob
        --iglob --glob-case-insensitive --heading --no-heading --hidden --ignore-case
        --line-buffered --no-line-buffered --block-buffered --no-line-number --line-regexp
        --max-columns --max-columns-preview --max-count --max-depth --mmap --no-mmap
        --no-multiline --no-config --no-ignore --no-messages --no-unicode --null --only-matching
        --pcre2 --quiet --regexp --replace --case-sensitive --smart-case --sort --sortr --text
        --trim --type --type-not --with-filename --no-filename --word-regexp --count
        --count-matches
    """.split(),
    "grep": """
        --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp --ignore-case
        --no-ignore-case -y --word-regexp --line-regexp --count --color --colour
        --files-without-match --files-with-matches --max-count --only-matching --quiet --silent
        --no-messages --with-filename --no-filename --null --group-separator --no-group-separator
        --text --recursive --include --exclude --exclude-dir --line-buffered
    """.split(),
}
_NUMBERED = {"--line-number", "--column", "--vimgrep"}
_CONTEXT = {"--context", "--after-context", "--before-context"}
# With these, lines that do not match are written or looked at, so -v is for counting alone.
_NOT_WITH_INVERTED = {
    "--only-matching",
    "--count-matches",
    "--quiet",
    "--silent",
    "--files-with-matches",
    "--files-without-match",
    "--vimgrep",
    "--replace",
}
_FOLDING = ("--ignore-case", "-y", "--smart-case")
_MATCHERS: dict[str, dict[str, Dialect]] = {
    "rg": {"--fixed-strings": "fixed", "--pcre2": "perl"},
    "grep": {
        "--fixed-strings": "fixed",
        "--extended-regexp": "extended",
        "--basic-regexp": "basic",
        "--perl-regexp": "perl",
    },
}
_READ_PIPES = {"rg", "grep", "head", "tail", "cut", "sort", "uniq", "wc", "tr", "sed", "awk"} | {
    "gawk",
    "cat",
    "nl",
    "jq",
}
_READ_FOLDERS = ("--recursive", "--files", "--directories")
_MAX_CONTEXT = 1_000


def describe_search(stage: Stage) -> Search | None:
    """Return what a stage searches for, or None if it has to see every line.

    Raises:
        CommandError: The stage is not allowed.
    """
    if stage.program not in _PLAIN:
        return None
    arguments = read_arguments(stage)
    names = {option.name for option, _ in arguments.options}
    is_inverted = "--invert-match" in names
    if names - {*_PLAIN[stage.program], *_NUMBERED, *_CONTEXT, "--invert-match"}:
        return None
    if is_inverted and ("--count" not in names or names & (_NOT_WITH_INVERTED | _CONTEXT)):
        return None
    patterns, paths = _split_operands(stage, arguments)
    requirement = _requirement(stage.program, names, patterns)
    context = max((int(v) for name in _CONTEXT for v in arguments.values(name)), default=0)
    if not requirement.clauses or context > _MAX_CONTEXT:
        return None
    is_recursive = stage.program == "rg" or "--recursive" in names
    if not paths and is_recursive:
        paths = (".",)
    needs_numbers = is_inverted or bool(names & (_NUMBERED | _CONTEXT))  # -A 0 separates too
    return Search(
        stage.program, requirement, paths, is_recursive, needs_numbers, is_inverted, context
    )


def reads_only_pipe(stage: Stage) -> bool:
    """Tell whether a stage reads nothing but what comes through the pipe.

    Raises:
        CommandError: The stage is not allowed.
    """
    if stage.program not in _READ_PIPES:
        return False
    arguments = read_arguments(stage)
    _, paths = _split_operands(stage, arguments)
    return not paths and not any(arguments.has(name) for name in _READ_FOLDERS)


def _split_operands(stage: Stage, arguments: Arguments) -> tuple[list[str], tuple[str, ...]]:
    """Return the patterns or scripts of a stage, and its paths."""
    program = PROGRAMS["awk" if stage.program == "gawk" else stage.program]
    given = arguments.values(program.replaced_by) if program.replaced_by else []
    texts = 0 if given else program.text_operands
    return given or list(arguments.operands[:texts]), arguments.operands[texts:]


def _requirement(program: str, names: set[str], patterns: list[str]) -> Requirement:
    chosen = [dialect for name, dialect in _MATCHERS[program].items() if name in names]
    if not patterns or len(chosen) > 1:
        return NOTHING_REQUIRED
    dialect: Dialect = "rust" if program == "rg" else "basic"
    ignores_case = any(name in names for name in _FOLDING)
    return any_of(
        [
            required_literals(text, chosen[0] if chosen else dialect, ignores_case=ignores_case)
            for text in patterns
        ]
    )
