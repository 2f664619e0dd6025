"""The documentation of Python's standard library, from the interpreter that is running.

The pages are those of ``pydoc``: one a module, and one a class. They are written by another
process (see ``introspect``) and kept in a private folder, so that they are written once for each
interpreter and version of this code.
"""

import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import BackendError
from ..pages import page_from_html
from ..site import Link, Page
from .offline import OfflineSite, PageCorpus

__all__ = ["Library", "load_library", "stdlib_site"]

_PROGRAM = Path(__file__).with_name("introspect.py")
_TIMEOUT_S = 300
_FORMAT = 3  # raise it when pages are made from the same HTML in another way


@dataclass(frozen=True, eq=False)
class Library:
    """The documentation and what it was made from.

    Attributes:
        version: The interpreter's, for example ``3.11.7``.
        pages: In order of their names.
        html: The HTML of each page, by its address.
        classes: By qualified name: ``bases``, and ``methods`` with defaults.
        functions: By qualified name: the defaults of parameters, as Python writes them.
        fingerprint: A hash of all of it.
    """

    version: str
    pages: tuple[Page, ...]
    html: Mapping[str, str]
    classes: Mapping[str, Mapping[str, Any]]
    functions: Mapping[str, Mapping[str, str]]
    fingerprint: str

    def url(self, name: str) -> str:
        """Return the address of the page of a module or class."""
        return _url(self.version, name)


@lru_cache(maxsize=1)
def load_library() -> Library:
    """Return the documentation of the interpreter that runs this.

    Raises:
        BackendError: The interpreter cannot write it.
    """
    code = _PROGRAM.read_bytes() + f"{sys.version}{sys.implementation.cache_tag}{_FORMAT}".encode()
    name = f"pydoc-{hashlib.sha256(code).hexdigest()[:16]}.json"
    folder = _private_folder()
    kept = None if folder is None else _read(folder / name)
    if kept is None:
        kept = _made(_written())
        if folder is not None:
            _keep(folder / name, kept)
    return _library(kept)


@lru_cache(maxsize=1)
def stdlib_site() -> OfflineSite:
    """Return the site of the documentation."""
    library = load_library()
    corpus = PageCorpus(
        tuple(page.url for page in library.pages),
        library.pages.__getitem__,
        name=f"pydoc-{library.version}",
        fingerprint=library.fingerprint,
        again=stdlib_site,
    )
    return OfflineSite(corpus, home=library.url("index"), html=library.html.__getitem__)


def _url(version: str, name: str) -> str:
    return f"https://pydoc.example/{version}/{name}.html"


def _written() -> dict[str, Any]:
    """Return what the interpreter, in a process of its own, writes about its library."""
    command = [sys.executable, "-s", "-S", "-P", os.fspath(_PROGRAM)]
    environment = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PATH": os.defpath}
    with tempfile.TemporaryDirectory() as folder:  # some modules look around where they start
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
            found: dict[str, Any] = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise BackendError(f"the documentation could not be written: {error}") from error
    return found


def _made(found: dict[str, Any]) -> dict[str, Any]:
    """Return what was written with its pages as text."""
    pages = []
    for name, title, html in found["pages"]:
        whole = f"<!doctype html><title>{title}</title><main><h1>{title}</h1>{html}</main>"
        page = page_from_html(whole, _url(found["version"], name))
        pages.append([page.url, page.title, page.paragraphs, page.links, whole])
    return {**found, "pages": pages}


def _library(kept: Mapping[str, Any]) -> Library:
    pages = tuple(
        Page(url, title, tuple(paragraphs), tuple(Link(*link) for link in links))
        for url, title, paragraphs, links, _ in kept["pages"]
    )
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
    html = {row[0]: row[4] for row in kept["pages"]}
    return Library(
        kept["version"], pages, html, kept["classes"], kept["functions"], fingerprint=digest
    )


def _private_folder() -> Path | None:
    """Return a folder that nobody else can write to, or None if there is none."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "seekgym"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):
        return None
    is_ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    is_private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder if is_ours and is_private else None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None


def _keep(path: Path, kept: Mapping[str, Any]) -> None:
    """Write a file whole or not at all; where it cannot be written, do without."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(name, path)
    except OSError:
        return
