"""Write the standard library's documentation, as pydoc gives it, to standard output as JSON.

Run as a program in a process of its own, with nothing but the standard library on its path and a
fixed hash seed: so importing some hundred modules touches nobody else, and the same interpreter
always writes the same bytes.
"""

import importlib
import inspect
import json
import os
import pkgutil
import pydoc
import re
import sys
import warnings
from types import ModuleType
from typing import Any

__all__ = ["main"]

_LEFT_OUT = frozenset(
    # importing them does something that one can see
    "antigravity this "
    # not installed everywhere, or not meant to be used
    "ensurepip idlelib lib2to3 pydoc_data test tkinter turtle turtledemo venv "
    # of one kind of system only
    "crypt curses fcntl grp msilib msvcrt nis nt ntpath ossaudiodev posix posixpath pty pwd "
    "readline resource spwd syslog termios tty winreg winsound "
    # different from one installation to the next
    "platform site sysconfig "
    # deprecated, and gone from later versions
    "aifc asynchat asyncore audioop cgi cgitb chunk distutils imghdr imp mailcap nntplib pipes "
    "smtpd sndhdr sre_compile sre_constants sre_parse sunau telnetlib uu xdrlib "
    # long tables of constants or of classes that are all alike
    "ast ctypes encodings errno multiprocessing opcode signal socket ssl stat symtable "
    "token tracemalloc".split()
)
_ADDRESS = re.compile(r"(?:&nbsp;| )at(?:&nbsp;| )0x[0-9a-fA-F]+")
_LOCAL = re.compile(r'href="([\w.]*?)(?:\.html)?#([\w.]+?)(?:-\w+)?"')
_MODULE_LINK = re.compile(r'href="([\w.]+)\.html"')
_PLAIN = (bool, int, float, type(None))
_MAX_DEFAULT_CHARS = 24


class _Writer(pydoc.HTMLDoc):
    """Writes a page for each module and one for each class that is defined in it."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, tuple[str, str]] = {}  # title and HTML
        self.classes: dict[str, dict[str, Any]] = {}
        self.functions: dict[str, dict[str, Any]] = {}

    def write(self, module: ModuleType) -> None:
        """Write the pages of a module."""
        name = module.__name__
        self.pages[name] = (f"module {name}", self.docmodule(module, name))
        for key, value in sorted(vars(module).items()):
            if inspect.isfunction(value) and value.__module__ == name and key[0] != "_":
                self.functions[f"{name}.{key}"] = _defaults(value)

    def filelink(self, url: str, path: str) -> str:
        """Name no file of this machine."""
        return "(from the standard library)"

    def docclass(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """Put a class on a page of its own, and leave a link to it."""
        qualified = f"{object.__module__}.{object.__qualname__}"
        shown = name or object.__name__
        if object.__module__ != mod or "." in object.__qualname__ or shown != object.__name__:
            return f'<p>class {shown}: see <a href="{qualified}.html">{qualified}</a></p>'
        if qualified not in self.pages:
            body = super().docclass(object, name, mod, *rest)
            way = f'<p>Defined in the module <a href="{mod}.html">{mod}</a>.</p>'
            self.pages[qualified] = (f"class {qualified}", way + body)
            self.classes[qualified] = _facts(object)
        first = (inspect.getdoc(object) or "").partition("\n")[0]
        return f'<p>class <a href="{qualified}.html">{shown}</a>: {self.escape(first)}</p>'

    def docother(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """Show the value of a plain constant, of anything else only the type."""
        is_plain = isinstance(object, _PLAIN) or (
            isinstance(object, str) and len(object) < 40 and os.sep not in object
        )
        value = self.repr(object) if is_plain else f"({type(object).__name__})"
        return f"<strong>{name}</strong> = {value}" if name else value


def main() -> None:
    """Write version, pages and facts."""
    warnings.simplefilter("ignore")
    inspect.getcomments = _no_comments  # pydoc would parse a module's source for every class
    writer = _Writer()
    modules = _modules()
    for module in modules:
        writer.write(module)
    names = [module.__name__ for module in modules]
    index = "".join(
        f'<li><a href="{name}.html">{name}</a>: {writer.escape(_summary(module))}'
        for name, module in zip(names, modules, strict=True)
    )
    writer.pages["index"] = ("The standard library", f"<ul>{index}</ul>")
    version = ".".join(map(str, sys.version_info[:3]))
    pages = [
        (name, title, _cleaned(name, html, writer.pages))
        for name, (title, html) in sorted(writer.pages.items())
    ]
    found = {
        "version": version,
        "pages": pages,
        "classes": writer.classes,
        "functions": writer.functions,
    }
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.stdout.write(json.dumps(found, sort_keys=True))


def _no_comments(object: Any) -> None:
    """Find no comments: only docstrings are documentation here."""


def _modules() -> list[ModuleType]:
    """Return the modules, sorted by name: those at the top, and one level of their packages."""
    names = [n for n in sys.stdlib_module_names if n[0] != "_" and n not in _LEFT_OUT]
    found: dict[str, ModuleType] = {}
    for name in sorted(names):
        module = _imported(name)
        if module is None:
            continue
        found[name] = module
        for entry in sorted(m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ()))):
            if entry[0] != "_" and entry not in ("test", "tests"):
                part = _imported(f"{name}.{entry}")
                if part is not None:
                    found[part.__name__] = part
    return [found[name] for name in sorted(found)]


def _imported(name: str) -> ModuleType | None:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    return module if module.__name__ == name else None


def _summary(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").strip().partition("\n")[0]


def _facts(cls: type) -> dict[str, Any]:
    """Return what tasks are made from: bases, methods, and all that the class itself defines."""
    methods = {
        name: _defaults(value)
        for name, value in sorted(vars(cls).items())
        if inspect.isfunction(value) and not (name.startswith("_") and name != "__init__")
    }
    bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__bases__]
    own = sorted(name for name, value in vars(cls).items() if callable(value) or _is_bound(value))
    return {"bases": bases, "methods": methods, "own": own}


def _is_bound(value: Any) -> bool:
    return isinstance(value, (classmethod, staticmethod, property))


def _defaults(function: Any) -> dict[str, str]:
    """Return the parameters whose default is a number or a short text, with its repr."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        parameter.name: repr(parameter.default)
        for parameter in parameters
        if type(parameter.default) in (int, float, str)
        and len(repr(parameter.default)) <= _MAX_DEFAULT_CHARS
        and os.sep not in repr(parameter.default)
    }


def _paths() -> list[str]:
    """Return the folders of this interpreter, the longest first."""
    program = os.path.dirname(os.path.dirname(sys.executable))
    found = {sys.prefix, sys.base_prefix, program, os.path.dirname(os.__file__), os.getcwd()}
    return sorted((path for path in found if len(path) > 4), key=len, reverse=True)


def _cleaned(name: str, html: str, pages: dict[str, tuple[str, str]]) -> str:
    """Return a page without addresses in memory and paths, its links leading to whole pages."""
    html = _ADDRESS.sub("", html)
    for path in _paths():
        if path in html:
            html = re.sub(re.escape(path) + r"[\w./-]*", "(a path)", html)
    module = name if pages[name][0].startswith("module") else name.rpartition(".")[0]

    def whole(match: re.Match[str]) -> str:
        target = f"{match[1] or module}.{match[2]}"
        page = target if target in pages else match[1] or module
        return f'href="{page}.html"'

    return _LOCAL.sub(whole, html)


if __name__ == "__main__":
    main()
