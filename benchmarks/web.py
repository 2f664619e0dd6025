"""Steps per second of seekgym/Web-v0 on its offline sites, and pages per second from HTML.

    python benchmarks/web.py

Steps are those of the oracle (searches, openings, answers) and of random calls, one environment
in one thread. The rival of our HTML reader is selectolax, in the same run on the same pages: a
parser in C that builds the tree of the standard, and whose time grows faster than the text where
the text is made for that. ``--folder PATH`` adds the HTML files of a folder.
"""

import argparse
import time
from pathlib import Path

import gymnasium as gym
from selectolax.lexbor import LexborHTMLParser

import seekgym  # noqa: F401 - registers the environments
from seekgym.agents import OracleAgent, RandomAgent
from seekgym.corpora.pages import page_from_html
from seekgym.corpora.sites.stdlib import load_library

SITES = ("pydoc", "knowledge:entities=3600", "phantom:people=50")
AT_LEAST = 2_000


def steps_per_second(env, agent_class, seconds):
    """Play episodes for some seconds and return the steps of one."""
    agent = agent_class(env)
    steps, seed, start = 0, 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        observation, info = env.reset(seed=seed)
        agent.reset(observation, info)
        is_over = False
        while not is_over:
            observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
            is_over = terminated or truncated
            steps += 1
        seed += 1
    return steps / (time.perf_counter() - start)


def best_seconds(function, pages):
    """Return the least time of three that a function takes for all pages."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for page in pages:
            function(page)
        times.append(time.perf_counter() - start)
    return min(times)


def compare_parsers(name, pages):
    """Print pages and megabytes a second of both readers."""
    ours = best_seconds(lambda html: page_from_html(html, "https://x.example/"), pages)
    rival = best_seconds(lambda html: LexborHTMLParser(html).root.text(separator=" "), pages)
    megabytes = sum(map(len, pages)) / 1e6
    print(
        f"| {name} | {len(pages):,} | {1e3 * ours / len(pages):.2f} ms | "
        f"{1e3 * rival / len(pages):.2f} ms | {megabytes / ours:.1f} MB/s | {rival / ours:.3f} |"
    )


def main():
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    print(f"| site | made in | oracle, steps/s | random, steps/s | at least {AT_LEAST:,} |")
    print("| --- | --: | --: | --: | --- |")
    for site in SITES:
        start = time.perf_counter()
        env = gym.make("seekgym/Web-v0", site=site)
        made = time.perf_counter() - start
        env.reset(seed=0)
        found = [steps_per_second(env, a, options.seconds) for a in (OracleAgent, RandomAgent)]
        verdict = "yes" if min(found) >= AT_LEAST else "no"
        print(f"| `{site}` | {made:.1f} s | {found[0]:,.0f} | {found[1]:,.0f} | {verdict} |")
    print("\n| HTML to text | pages | ours, a page | selectolax, a page | ours | its time / ours |")
    print("| --- | --: | --: | --: | --: | --: |")
    library = load_library()
    compare_parsers("pydoc", [library.html[page.url].encode() for page in library.pages[::4]])
    if options.folder:
        files = sorted(options.folder.rglob("*.html"))[:200]
        compare_parsers(options.folder.name, [file.read_bytes() for file in files])
    for depth in (10_000, 20_000, 40_000):
        compare_parsers(f"{depth:,} nested `div`", [b"<div>" * depth])


if __name__ == "__main__":
    main()
