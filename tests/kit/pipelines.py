"""Random pipelines over a small corpus that has everything raw files have."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seekgym.corpora import load_corpus
from seekgym.corpora.shell import Pipeline, Stage

FILES = (
    "corpus.jsonl crlf.txt empty-lines.txt latin.txt nul.bin mark.txt utf16.txt long.txt "
    "no-end.txt empty.txt letters.txt sub/deep.txt sub/.hidden ignored.txt"
).split()
TEXT = [name for name in FILES if name not in ("nul.bin", "utf16.txt", "mark.txt", "empty.txt")]
LETTERS = [
    "Kelvin 300 \u212a and kelvin",
    "\u017ftra\u00dfe STRASSE strasse Stra\u1e9ee",
    "\u0130stanbul istanbul I\u015f\u0131k \u0131\u015f\u0131k ISIK",
    "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3",
    "caf\u00e9 CAF\u00c9 cafe\u0301 na\u00efve NA\u00cfVE",
    "\u4e1c\u4eac\u5854 \u6771\u4eac\u30bf\u30ef\u30fc \uc11c\uc6b8\ud0c0\uc6cc",
    "\u01c4ungla \u01c5ungla \u01c6ungla \ufb01ne fine",
    "price 5$ (net) [a+b] {x} ^top a|b c\\d *star? #no",
]


def write_corpus(folder: Path, encodings: Path) -> None:
    """Write the files."""
    rng = np.random.default_rng(7)
    documents = list(load_corpus("hotpotqa-100"))[:160]
    lines = [f'{{"id": "{d.id}", "text": "{d.text}"}}'.replace("\n", " ") for d in documents]
    sentences = [s.strip() for d in documents for s in d.text.split(". ") if s.strip()]
    folder.mkdir()
    (folder / "sub").mkdir()

    def write(name, text, encoding="utf-8"):
        data = text if isinstance(text, bytes) else text.encode(encoding, "replace")
        (folder / name).write_bytes(data)

    def some(count):
        return [sentences[i] for i in rng.integers(len(sentences), size=count)]

    write("corpus.jsonl", "\n".join(lines) + "\n")
    write("crlf.txt", "\r\n".join(some(120)) + "\r\n")
    write("empty-lines.txt", "\n\n\n".join(some(80)) + "\n\n\n\n")
    spoilt = [s.encode() + bytes([0xE9, 0x20, 0xFF]) * (n % 3) for n, s in enumerate(some(120))]
    write("latin.txt", b"\n".join(spoilt) + b"\n")
    write("nul.bin", "\n".join(some(40)).encode() + b"\n\0\1\2\n" + "\n".join(some(40)).encode())
    write("mark.txt", b"\xef\xbb\xbf" + "\n".join(some(60)).encode() + b"\n")
    write("utf16.txt", "\n".join(some(60)), "utf-16")
    write("long.txt", "\n".join([*some(9), " ".join(some(400)), *some(9), "x" * 70_000, *some(9)]))
    write("no-end.txt", "\n".join(some(100)))
    write("empty.txt", b"")
    write("letters.txt", "\n".join(LETTERS * 4 + some(60) + LETTERS) + "\n")
    marked = [("\ufeff" if n % 4 == 0 else "") + s for n, s in enumerate(some(60))]
    write("sub/deep.txt", "\n".join(["first", *marked]) + "\n")
    write("sub/.hidden", "\n".join(some(30)) + "\n")
    write("ignored.txt", "\n".join(some(30)) + "\n")
    write(".ignore", "ignored.txt\n")
    for path in sorted(encodings.glob("*.txt")):
        write(path.name, path.read_bytes())


@dataclass
class Generator:
    """Draws pipelines whose patterns come from the corpus."""

    folder: Path
    rng: np.random.Generator

    def __post_init__(self):
        self.lines = {
            name: [
                line.rstrip("\r")
                for line in (self.folder / name).read_bytes().decode("utf-8", "ignore").split("\n")
                if len(line) > 12
            ]
            for name in TEXT
        }

    def pipeline(self) -> Pipeline:
        """Draw one pipeline."""
        roll = self.rng.random()
        if roll < 0.05:
            return Pipeline((self.reader(), *self.rest()))
        name = self.pick(TEXT if roll < 0.9 else FILES)
        make = self.rg if self.rng.random() < 0.5 else self.grep
        return Pipeline((make(name), *self.rest()))

    def pick(self, choices):
        """Return one of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def maybe(self, chance, *words):
        """Return the words, or none."""
        return list(words) if self.rng.random() < chance else []

    def span(self, name):
        """Return a piece of a line."""
        line = self.pick(self.lines.get(name) or self.lines["corpus.jsonl"])
        length = int(self.rng.integers(1, 24))
        start = int(self.rng.integers(max(1, len(line) - length)))
        piece = line[start : start + length].replace("\0", "")
        return piece.swapcase() if self.rng.random() < 0.15 else piece

    def escape(self, text, dialect):
        """Return a pattern that matches the text alone."""
        special = {"basic": r"[.*^$\[\]\\]", "extended": r"[.*^$\[\]\\+?(){}|]"}
        return re.sub(special.get(dialect, r"[.*^$\[\]\\+?(){}|#&~-]"), r"\\\g<0>", text)

    def pattern(self, name, dialect):
        """Draw a pattern in a syntax."""
        if dialect == "fixed":
            return self.span(name)
        parts = [self.bend(self.span(name), dialect) for _ in range(self.pick([1, 1, 1, 2]))]
        if dialect == "basic":
            either, opening, closing = r"\|", r"\(", r"\)"
        else:
            either, opening, closing = "|", "(", ")"
        joined = self.pick([".*", ".+" if dialect != "basic" else r".\+", either, ".*"]).join(parts)
        roll = self.rng.random()
        if roll < 0.1:
            other = self.escape(self.span(name), dialect)
            joined = f"{opening}{joined}{either}{other}{closing}"
        elif roll < 0.2:
            joined = "^" + joined
        elif roll < 0.3:
            joined += "$"
        elif roll < 0.4 and dialect != "rust":
            joined = r"\b" + joined
        elif roll < 0.45 and dialect in ("rust", "perl"):
            joined = "(?i)" + joined
        return joined

    def bend(self, text, dialect):
        """Turn a text into a pattern that is looser in one place."""
        place = int(self.rng.integers(len(text))) if text else 0
        before, here, after = text[:place], text[place : place + 1], text[place + 1 :]
        left, right = self.escape(before, dialect), self.escape(after, dialect)
        middle = self.escape(here, dialect)
        star, plus, maybe, many = (
            ("*", r"\+", r"\?", r"\{1,3\}") if dialect == "basic" else ("*", "+", "?", "{1,3}")
        )
        forms = [middle] * 4 + [
            ".",
            ".*",
            middle + star if left and middle else ".",
            middle + plus if middle else ".",
            middle + maybe if left and middle else ".",
            middle + many if middle else ".",
            r"\w" + star,
            "[^q]",
            "[[:alpha:]]",
            f"[{here}z]" if here.isalnum() else ".",
            "[a-z]" + plus,
            r"\s" + plus,
            r"\S",
        ]
        if dialect in ("rust", "perl"):
            forms += [r"\d", "(?:" + middle + "|zz)", r"\pL", "[\\w\\]]", "(?i:" + middle + ")"]
        if dialect == "perl":
            forms += ["(?=.)" + middle, r"\K" + middle, "(?#why)" + middle, "(?>" + middle + ")"]
        return left + self.pick(forms) + right

    def shared_options(self):
        """Draw options that rg and grep both have."""
        return [
            *self.maybe(0.3, "-i"),
            *self.maybe(0.12, "-w"),
            *self.maybe(0.04, "-x"),
            *self.maybe(0.2, "-n"),
            *self.maybe(0.1, "-o"),
            *self.maybe(0.08, "-c"),
            *self.maybe(0.05, "-l"),
            *self.maybe(0.08, "-m", str(self.pick([0, 1, 2, 5]))),
            *self.maybe(0.07, self.pick(["-A", "-B", "-C"]), str(self.pick([0, 1, 2, 7]))),
            *self.maybe(0.04, "-v"),
            *self.maybe(0.03, "-vc"),
            *self.maybe(0.03, "-b"),
            *self.maybe(0.05, "-H"),
            *self.maybe(0.05, "-a"),
            *self.maybe(0.02, "-q"),
        ]

    def rg(self, name):
        """Draw a stage of rg."""
        dialect = self.pick(["rust", "rust", "rust", "fixed", "perl"])
        options = [
            *self.shared_options(),
            *{"fixed": ["-F"], "perl": ["-P"], "rust": []}[dialect],
            *self.maybe(0.04, "--count-matches"),
            *self.maybe(0.04, "--column"),
            *self.maybe(0.03, "--vimgrep"),
            *self.maybe(0.03, "--heading"),
            *self.maybe(0.03, "--crlf"),
            *self.maybe(0.03, "-S"),
            *self.maybe(0.03, "--hidden"),
            *self.maybe(0.03, "--files-without-match"),
            *self.maybe(0.02, "--trim"),
            *self.maybe(0.02, "-M", "80"),
            *self.maybe(0.02, "-r", "<$0>"),
            *self.maybe(0.02, "-U"),
            *self.maybe(0.02, "--no-unicode"),
            *self.maybe(0.02, "-g", "*.txt"),
            *self.maybe(0.02, "--sortr", "path"),
        ]
        paths = self.pick([[name]] * 8 + [[name, "corpus.jsonl"], [], ["."], ["sub", name]])
        return Stage("rg", (*options, *self.patterns(name, dialect), *paths))

    def grep(self, name):
        """Draw a stage of grep."""
        dialect = self.pick(["basic", "basic", "extended", "extended", "fixed", "perl"])
        flag = {"fixed": "-F", "perl": "-P", "extended": "-E", "basic": "-G"}[dialect]
        paths = self.pick([[name]] * 8 + [[name, "corpus.jsonl"], [], ["."], ["sub", name]])
        is_recursive = not paths or "." in paths or "sub" in paths
        options = [
            *self.shared_options(),
            *([] if dialect == "basic" and self.rng.random() < 0.5 else [flag]),
            *(["-r"] if is_recursive else []),
            *self.maybe(0.04, "-L"),
            *self.maybe(0.03, "-h"),
            *self.maybe(0.02, "-z"),
            *self.maybe(0.02, "-s"),
            *self.maybe(0.02, "--include=*.txt"),
        ]
        return Stage("grep", (*options, *self.patterns(name, dialect), *paths))

    def patterns(self, name, dialect):
        """Draw one or two patterns, and options to give them with."""
        first = self.pattern(name, dialect)
        if self.rng.random() < 0.06:
            return ["-e", first, "-e", self.pattern(name, dialect)]
        return ["-e", first] if first.startswith("-") or self.rng.random() < 0.1 else [first]

    def reader(self):
        """Draw a first stage that is no search."""
        name = self.pick(TEXT)
        stages = [("cat", name), ("head", "-n", "9", name), ("sort", name), ("wc", "-l", name)]
        program, *words = self.pick(stages)
        return Stage(program, tuple(words))

    def rest(self):
        """Draw the stages after the first."""
        word = self.span("corpus.jsonl")[:4] or "a"
        pieces = [[]] * 4 + [
            [("head", "-n", "5")],
            [("tail", "-n", "3")],
            [("wc", "-l")],
            [("sort",), ("uniq",), ("head", "-n", "5")],
            [("sort", "-r"), ("head", "-n", "5")],
            [("cut", "-c", "1-40")],
            [("tr", "a-z", "A-Z"), ("uniq", "-c")],
            [("sed", "-n", "1p")],
            [("sed", "3q")],
            [("sed", "$d")],
            [("sed", "=")],
            [("grep", "-c", "-F", "-e", word)],
            [("rg", "-v", "-F", "-e", word), ("head", "-n", "4")],
            [("nl",)],
            [("cat", "-n"), ("head", "-n", "3")],
            [("cat", "corpus.jsonl"), ("head", "-n", "1")],
        ]
        return [Stage(program, tuple(words)) for program, *words in self.pick(pieces)]
