"""The programs that may run, the options each may be given, and how its operands are read.

The tables are the whole of what is allowed. An option that runs a program, writes a file, reads
another file, follows links or tells the time is in none of them.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..errors import CommandError
from .expressions import check_find
from .options import Arguments, Option, Reader, option_table
from .parse import Pipeline, Stage
from .paths import check_path
from .scripts import check_awk, check_jq, check_sed
from .tables import TABLES

__all__ = ["PROGRAMS", "Command", "Program", "check_pipeline", "find_program", "read_arguments"]

_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True)
class Program:
    """Hold what is allowed of one program.

    Attributes:
        name: What a command calls it.
        options: The options it may be given.
        text_operands: How many operands come before the paths: a pattern, a script, sets.
        replaced_by: The option that gives what the first operand else would, ``-e``.
        check_text: Refuses a script that does more than it may.
        max_paths: The most paths it may be given.
        fixed: What it is always given.
        binary: The file that is run, where it has another name.
        number_option: What ``-5`` stands for.
        has_separator: Whether it knows ``--``.
        needs_file: Whether it may not read a pipe, and why.
    """

    name: str
    options: dict[str, Option] = field(default_factory=dict)
    text_operands: int = 0
    replaced_by: str = ""
    check_text: Callable[[str], None] | None = None
    max_paths: int = 1_000
    fixed: tuple[str, ...] = ()
    binary: str = ""
    number_option: str = ""
    has_separator: bool = True
    stops_at_operand: bool = False
    needs_file: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Hold one program that was found to be allowed: the file to run and its argument array."""

    path: str
    arguments: tuple[str, ...]


def _program(name: str, **settings: object) -> Program:
    return Program(name, dict(option_table(TABLES[name])), **settings)  # type: ignore[arg-type]


PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        _program(
            "rg",
            text_operands=1,
            replaced_by="--regexp",
            fixed=("--no-config", "--no-ignore-parent", "--no-ignore-global", "--sort=path"),
        ),
        _program("grep", text_operands=1, replaced_by="--regexp", number_option="-C"),
        _program("head", number_option="-n"),
        _program("tail", number_option="-n"),
        _program("cut"),
        _program("sort", fixed=("--parallel=1", "--buffer-size=256M")),
        _program("uniq", max_paths=1),
        _program("wc"),
        _program("tr", text_operands=2, max_paths=0, stops_at_operand=True),
        _program(
            "sed",
            text_operands=1,
            replaced_by="--expression",
            check_text=check_sed,
            fixed=("--sandbox",),
        ),
        _program(
            "awk",
            text_operands=1,
            check_text=check_awk,
            fixed=("--sandbox",),
            binary="gawk",
            stops_at_operand=True,
        ),
        _program("cat"),
        _program("nl"),
        _program("tac", needs_file="it would keep what comes through a pipe in a file"),
        _program("ls"),
        Program("find"),
        _program("jq", text_operands=1, check_text=check_jq, has_separator=False),
    )
}
_ALIASES = {"gawk": "awk"}


def check_pipeline(pipeline: Pipeline, root: str | os.PathLike[str]) -> tuple[Command, ...]:
    """Return the commands of a pipeline, each found to be allowed.

    Args:
        pipeline: What was parsed.
        root: The folder that paths are relative to, and may not lead out of.

    Raises:
        CommandError: A program, an option, a script or a path is not allowed, or a program is
            not installed here.
    """
    return tuple(
        _check_stage(stage, Path(root), reads_pipe=number > 0)
        for number, stage in enumerate(pipeline.stages)
    )


def read_arguments(stage: Stage) -> Arguments:
    """Return what a stage asks its program, without looking at paths.

    Raises:
        CommandError: The program or an option is not allowed.
    """
    program = _allowed_program(stage)
    reader = Reader(
        stage.program,
        program.options,
        number_option=program.number_option,
        stops_at_operand=program.stops_at_operand,
    )
    return reader.read(stage.arguments)


@cache
def find_program(name: str) -> str | None:
    """Return the file of a program, or None where it is not installed.

    Only folders of the system are looked into, and for rg the one that pip installs it to.
    """
    folders = [*_FOLDERS, *([str(Path(sys.prefix) / "bin")] if name == "rg" else [])]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return None if found is None else os.path.realpath(found)


def _allowed_program(stage: Stage) -> Program:
    program = PROGRAMS.get(_ALIASES.get(stage.program, stage.program))
    if program is None:
        raise CommandError(
            "program",
            f"the program {stage.program[:40]!r} is not allowed; allowed are {' '.join(PROGRAMS)}",
        )
    return program


def _check_stage(stage: Stage, root: Path, *, reads_pipe: bool) -> Command:
    program = _allowed_program(stage)
    path = find_program(program.binary or program.name)
    if path is None:
        raise CommandError("program", f"{program.binary or program.name} is not installed here")
    if program.name == "find":
        words: Sequence[str] = check_find(stage.arguments, root)
    else:
        words = _checked_words(program, read_arguments(stage), root, reads_pipe=reads_pipe)
    return Command(path, (program.name, *program.fixed, *words))


def _checked_words(
    program: Program, arguments: Arguments, root: Path, *, reads_pipe: bool
) -> Sequence[str]:
    """Check scripts and paths, and return the words after the program's name."""
    scripts = arguments.values(program.replaced_by) if program.replaced_by else []
    texts = 0 if scripts or _asks_for_files(program, arguments) else program.text_operands
    paths = arguments.operands[texts:]
    if program.check_text is not None:
        for script in scripts or arguments.operands[:texts]:
            program.check_text(script)
    if len(arguments.operands) < min(texts, 1):
        raise CommandError("operand", f"{program.name}: the pattern or script is missing")
    if len(paths) > program.max_paths:
        raise CommandError(
            "operand",
            f"{program.name} takes at most {program.max_paths} files, got {len(paths)}",
        )
    for path in paths:
        check_path(path, root, program.name)
    if program.needs_file and (reads_pipe or "-" in paths) and set(paths) <= {"-"}:
        raise CommandError("operand", f"{program.name} needs a file here: {program.needs_file}")
    return [*arguments.words(), *_separated(program, arguments)]


def _asks_for_files(program: Program, arguments: Arguments) -> bool:
    """Tell whether rg lists files, and so takes no pattern."""
    return program.name == "rg" and arguments.has("--files")


def _separated(program: Program, arguments: Arguments) -> Sequence[str]:
    """Return the operands so that none can be read as an option."""
    if program.has_separator:
        return ["--", *arguments.operands]
    for operand in arguments.operands:
        if operand.startswith("-") and operand != "-":
            raise CommandError("operand", f"{program.name}: no argument may begin with '-'")
    return arguments.operands
