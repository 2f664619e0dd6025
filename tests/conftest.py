import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import seekgym  # noqa: F401 - registers the environments

TESTS = Path(__file__).parent
sys.path.append(str(TESTS / "kit"))  # so that spawned processes can import the wrong environments


def pytest_addoption(parser):
    parser.addoption("--write-golden", action="store_true", help="write golden transcripts anew")
    parser.addoption("--exhaustive", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--exhaustive"):
        long = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_configure(config):
    config.addinivalue_line("markers", "exhaustive: takes minutes; run by make test-all")


@pytest.fixture(scope="session")
def cases():
    """Read a file of cases."""

    def read(name):
        text = (TESTS / "cases" / name).read_text(encoding="utf-8")
        if name.endswith(".json"):
            return json.loads(text)
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def env():
    return gym.make("seekgym/QA-v0").unwrapped


@pytest.fixture
def write(tmp_path):
    """Write bytes or lines of JSON to a file and return its path."""

    def to_file(name, content):
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = "".join(json.dumps(row) + "\n" for row in content).encode()
        path.write_bytes(content)
        return path

    return to_file
