"""The README is true: its code runs, its table is what the bench prints."""

import re
from pathlib import Path

import pytest

from seekgym.agents import AGENTS
from seekgym.leaderboard import EnvironmentChoice, evaluate
from seekgym.leaderboard.evaluate import METRICS
from seekgym.leaderboard.report import HEADINGS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_code_runs(capsys):
    pages = README + "".join(
        (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for page in (
            "phantom",
            "knowledge",
            "models",
            "rollouts",
            "team",
            "grep",
            "web",
            "training",
            "training_environments",
        )
    )
    blocks = re.findall(r"```python\n(.*?)```", pages, re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("1.0 1.0 ")
    shown = re.findall(r"```text\n(.*?)```", pages, re.DOTALL)
    assert len(shown) == 3
    assert all(text in printed for text in shown)


def test_the_table_is_what_the_bench_prints():
    table = (
        re.search(r"\| `seekgym/QA-v0`, seed 0 (.*?)\n\n", README, re.DOTALL)[0]
        .strip()
        .splitlines()
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0][1:] == [HEADINGS[metric] for metric in METRICS]
    found = evaluate(list(AGENTS), [EnvironmentChoice("seekgym/QA-v0")], seed=0)
    expected = [
        [
            f"{row.agent} (sees gold)" if row.sees_gold else row.agent,
            *(f"{row.metrics[metric].mean:.2f}" for metric in METRICS),
        ]
        for row in found.rows
    ]
    assert rows[2:] == expected


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http)([^)]+)\)|src=\"([^\"]+)\"", README))
def test_files_it_names_exist(path):
    assert (ROOT / "".join(path)).exists()


def test_it_stays_one_page():
    assert len(README.splitlines()) <= 150
