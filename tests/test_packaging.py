"""The package holds all it should, and importing it does nothing more than it should."""

import ast
import configparser
import doctest
import fnmatch
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {"corpora": 0, "envs": 1, "agents": 2, "leaderboard": 3}


def setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    packages = parser["options"]["packages"].split()
    folders = dict(
        line.split(" = ") for line in parser["options"]["package_dir"].strip().splitlines()
    )
    data = dict(parser["options.package_data"])
    return packages, folders, data


def folder_of(package, folders):
    root = max((name for name in folders if f"{package}.".startswith(f"{name}.")), key=len)
    rest = package[len(root) :].strip(".").replace(".", "/")
    return ROOT / folders[root] / rest


PACKAGES, FOLDERS, DATA = setup()
MODULES = sorted(
    f"{package}.{path.stem}".removesuffix(".__init__")
    for package in PACKAGES
    for path in folder_of(package, FOLDERS).glob("*.py")
    if path.stem != "__main__"
)


def test_every_folder_with_code_is_listed():
    listed = {folder_of(package, FOLDERS) for package in PACKAGES}
    roots = [ROOT / folder for folder in FOLDERS.values()]
    found = {path.parent for root in roots for path in root.rglob("*.py")}
    assert found == listed


def test_every_data_file_is_listed():
    missing = []
    for package, folder in FOLDERS.items():
        patterns = [p.strip() for p in DATA.get(package, "").replace("\n", ",").split(",")]
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT / folder).as_posix()
            is_code = path.suffix in (".py", ".pyc") or path.is_dir()
            if not is_code and not any(fnmatch.fnmatch(relative, p) for p in patterns):
                missing.append(str(path))
    assert missing == []


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_all_is_exact(name):
    module = importlib.import_module(name)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
    }
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert defined <= set(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


def test_imports_only_go_down():
    wrong = []
    for name in MODULES:
        part = name.split(".")[1] if "." in name else ""
        module = importlib.import_module(name)
        depth = name.count(".") - (not module.__file__.endswith("__init__.py"))
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.module or node.level <= depth:
                continue
            target = node.module.split(".")[0]
            if part in FLOORS and FLOORS.get(target, -1) > FLOORS[part]:
                wrong.append(f"{name} -> {target}")
    assert wrong == []


def test_no_generic_name_is_imported():
    code = "import seekgym.cli, sys; print(sorted(set(sys.modules) & set(%r)))"
    generic = ["envs", "agents", "corpora", "leaderboard", "tests"]
    assert run_python(code % generic) == "[]"


def test_import_is_light():
    code = (
        "import sys, time; start = time.perf_counter(); import seekgym; "
        "took = time.perf_counter() - start; "
        "print(sorted({'torch', 'jnius', 'transformers', 'pandas'} & set(sys.modules)), took < 2)"
    )
    assert run_python(code) == "[] True"


def test_import_takes_half_a_second_at_most():
    code = "import seekgym"
    best = min(import_seconds(code) for _ in range(5))
    assert best < 0.5


def import_seconds(code):
    lines = run_python(code, "-X", "importtime", stream="stderr").splitlines()
    total = next(line for line in lines if line.rsplit("|", 1)[1].strip() == "seekgym")
    return int(total.split("|")[1]) / 1e6


def run_python(code, *options, stream="stdout"):
    done = subprocess.run(
        [sys.executable, "-P", *options, "-c", code], capture_output=True, text=True, check=True
    )
    return getattr(done, stream).strip()


def test_files_stay_readable():
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for folder in FOLDERS.values()
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 420
    }
    assert long == {}
