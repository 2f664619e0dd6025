"""Paths of a command: relative, and never out of the corpus folder."""

import os
import stat
from pathlib import Path

from ..errors import CommandError

__all__ = ["check_path"]


def check_path(word: str, root: Path, program: str) -> None:
    """Refuse a path that leaves the folder or is no plain file or folder.

    A path that does not exist is left to the program, which says so itself. A symlink may lead
    to another place inside the folder.

    Args:
        word: What the command says; ``-`` is the pipe.
        root: The folder.
        program: Who is given the path, for the message.

    Raises:
        CommandError: The path is not allowed.
    """
    if word == "-":
        return
    if not word:
        raise CommandError("path", f"{program}: a path is empty")
    if word.startswith("/") or ".." in word.split("/"):
        raise CommandError(
            "path",
            f"{program}: the path {word[:80]!r} is not allowed; paths are relative to the corpus "
            "folder, without '..' and without a leading '/'",
        )
    inside = os.path.realpath(root)
    real = os.path.realpath(os.path.join(inside, word))
    if real != inside and not real.startswith(inside.rstrip("/") + "/"):
        raise CommandError("path", f"{program}: {word[:80]!r} leads out of the corpus folder")
    try:
        mode = os.stat(real).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise CommandError("path", f"{program}: {word[:80]!r} is neither a file nor a folder")
