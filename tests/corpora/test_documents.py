import copy
import gzip
import json
import os
import pickle
from pathlib import Path

import pytest

from seekgym.corpora import Corpus, CorpusError, Document

CASES = Path(__file__).parent.parent / "cases"
ROW = {"id": "a", "title": "A", "text": "alpha"}


def test_a_corpus_is_a_sequence_with_ids(write):
    corpus = Corpus.from_jsonl(write("c.jsonl", [ROW, {"id": "b", "text": "beta"}]))
    assert len(corpus) == 2
    assert corpus["b"] == corpus[1] == corpus[-1] == Document("b", "", "beta")
    assert [document.id for document in corpus] == ["a", "b"]
    assert corpus[:1] == (Document("a", "A", "alpha"),)
    assert "a" in corpus
    assert corpus[0] in corpus
    assert "c" not in corpus
    assert 3 not in corpus
    with pytest.raises(KeyError):
        corpus["c"]
    with pytest.raises(IndexError):
        corpus[2]


def test_documents_are_rendered_when_asked():
    asked = []

    def render(position):
        asked.append(position)
        return Document(str(position), "", "text")

    corpus = Corpus([str(i) for i in range(1000)], render, name="lazy", fingerprint="f")
    assert asked == []
    assert corpus["7"].id == "7"
    assert asked == [7]
    assert corpus.fingerprint == "f"


def test_plain_and_gzip_bom_crlf_blank_lines_and_any_script_are_read(write, tmp_path):
    rows = [ROW, {"id": "ü🚆", "title": "Ōsaka", "text": "北京 \u202e\ufeff", "links": ["a"]}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    raw = b"\xef\xbb\xbf" + "\r\n\r\n \r\n".join([*lines, ""]).encode()
    plain = Corpus.from_jsonl(write("c.jsonl", raw))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(raw))
    packed = Corpus.from_jsonl(tmp_path / "c.jsonl.gz")
    assert list(plain) == list(packed)
    assert plain["ü🚆"].links == ("a",)
    assert plain.fingerprint == packed.fingerprint


def test_lone_surrogates_become_replacement_characters(write):
    raw = b'{"id": "a", "text": "x \\ud83c y"}\n'
    assert Corpus.from_jsonl(write("c.jsonl", raw))["a"].text == "x \ufffd y"


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b'{"id": "a", "text": "x"}\n{"id": ', "line 2"),
        (b'{"id": "a", "text": "x"}\n[1]', "line 2"),
        (b'{"text": "x"}', "line 1, field 'id'"),
        (b'{"id": "a"}', "line 1, field 'text'"),
        (b'{"id": "a", "text": 3}', "line 1, field 'text'"),
        (b'{"id": "a", "text": null}', "line 1, field 'text'"),
        (b'{"id": "", "text": "x"}', "line 1, field 'id'"),
        (b'{"id": true, "text": "x"}', "line 1, field 'id'"),
        (b'{"id": "a", "text": "x", "links": "b"}', "line 1, field 'links'"),
        (b'{"id": "a", "text": "x", "score": NaN}', "line 1"),
        (b'{"id": "a", "text": "x"}\n\n{"id": "a", "text": "y"}', "line 3, field 'id'.*line 1"),
        (b'{"id": "a", "text": "caf\xe9"}', "line 1"),
        (b'{"id": "a", "text": "x"}\n\xff\xfe', "line 2"),
        (b'{"id": "a", "text": "x\\u0000"}', "line 1, field 'text'"),
        (b'{"id": "a", "text": "x"}\n\x00', "line 2"),
        (b"[" * 100_000, "line 1"),
        (b"", "no documents"),
        (b"\n \n", "no documents"),
    ],
)
def test_bad_data_is_named_by_file_line_and_field(write, raw, place):
    path = write("bad.jsonl", raw)
    with pytest.raises(CorpusError, match=f"bad.jsonl.*{place}"):
        Corpus.from_jsonl(path)


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"nothing\.jsonl"):
        Corpus.from_jsonl(tmp_path / "nothing.jsonl")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"id": "a", "text": "x"}\n')[:-4])
    with pytest.raises(CorpusError, match=r"cut\.jsonl\.gz"):
        Corpus.from_jsonl(tmp_path / "cut.jsonl.gz")
    (tmp_path / "fake.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(CorpusError, match=r"fake\.jsonl\.gz"):
        Corpus.from_jsonl(tmp_path / "fake.jsonl.gz")


def test_a_folder_is_a_corpus_in_sorted_order(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("beta", encoding="utf-8")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfalpha")
    (tmp_path / "note.md").write_text("no", encoding="utf-8")
    corpus = Corpus.from_folder(tmp_path)
    assert [(d.id, d.title, d.text) for d in corpus] == [
        ("a.txt", "a", "alpha"),
        ("sub/b.txt", "b", "beta"),
    ]
    with pytest.raises(CorpusError, match="pattern"):
        Corpus.from_folder(tmp_path, pattern="*.rst")
    with pytest.raises(CorpusError, match="not a folder"):
        Corpus.from_folder(tmp_path / "nowhere")


def manifest():
    lines = (CASES / "encodings" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: entry["file"])
def test_files_in_many_encodings_are_read_or_named(entry, tmp_path):
    raw = (CASES / "encodings" / entry["file"]).read_bytes()
    (tmp_path / "file.txt").write_bytes(raw)
    if entry["valid_utf8"] and b"\0" not in raw:
        text = Corpus.from_folder(tmp_path)["file.txt"].text
        assert text == raw.decode("utf-8-sig")
    else:
        with pytest.raises(CorpusError, match=r"file\.txt, line \d+, field 'text'"):
            Corpus.from_folder(tmp_path)


def test_naughty_strings_survive_as_documents(cases, write):
    strings = [text for text in cases("naughty_strings.json") if "\0" not in text]
    rows = [{"id": f"n{i}", "title": text, "text": text} for i, text in enumerate(strings)]
    corpus = Corpus.from_jsonl(write("n.jsonl", rows))
    assert [document.text for document in corpus] == strings


def test_a_duplicate_id_is_refused_without_a_file_too():
    with pytest.raises(CorpusError, match="'a' appears twice"):
        Corpus.from_documents([Document("a", "", ""), Document("a", "", "x")])
    with pytest.raises(CorpusError, match="no documents"):
        Corpus.from_documents([])


def test_copies_share_and_pickles_keep_the_corpus(write):
    corpus = Corpus.from_jsonl(write("c.jsonl", [ROW]))
    assert copy.deepcopy(corpus) is corpus
    again = pickle.loads(pickle.dumps(corpus))
    assert list(again) == list(corpus)
    assert again.fingerprint == corpus.fingerprint


def test_the_fingerprint_sees_every_field():
    base = Document("a", "t", "x", "u", ("l",))
    others = [
        Document("b", "t", "x", "u", ("l",)),
        Document("a", "s", "x", "u", ("l",)),
        Document("a", "t", "y", "u", ("l",)),
        Document("a", "t", "x", None, ("l",)),
        Document("a", "t", "x", "u", ()),
    ]
    prints = {Corpus.from_documents([d]).fingerprint for d in [base, *others]}
    assert len(prints) == 6


@pytest.mark.parametrize("bad", ["", " ", " a", "a ", "a\nb", "a\x00b", "[a]", "a]", "x" * 201])
def test_ids_that_an_agent_could_not_repeat_are_refused(bad, write):
    with pytest.raises(CorpusError, match="field 'id'"):
        Corpus.from_documents([Document(bad, "", "x")])
    if bad.strip():
        with pytest.raises(CorpusError, match="field 'id'"):
            Corpus.from_jsonl(write("c.jsonl", [{"id": bad, "text": "x"}]))


def test_documents_of_the_wrong_type_are_named():
    with pytest.raises(CorpusError, match="document 1, field 'id': must be a text, got 1"):
        Corpus.from_documents([Document(1, "", "x")])
    with pytest.raises(CorpusError, match="document 2: must be a Document, got str"):
        Corpus.from_documents([Document("a", "", "x"), "b"])


def test_null_stands_for_a_field_that_is_left_out(write):
    row = {"id": "a", "text": "x", "title": None, "url": None, "links": None}
    assert Corpus.from_jsonl(write("c.jsonl", [row]))["a"] == Document("a", "", "x")


def test_a_damaged_archive_is_named(tmp_path):
    raw = bytearray(gzip.compress(b'{"id": "a", "text": "x"}\n' * 100))
    raw[12:30] = b"\xff" * 18
    (tmp_path / "c.jsonl.gz").write_bytes(raw)
    with pytest.raises(CorpusError, match=r"c\.jsonl\.gz"):
        Corpus.from_jsonl(tmp_path / "c.jsonl.gz")


def test_a_file_name_that_is_not_utf8_is_read(tmp_path):
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("x", encoding="utf-8")
    corpus = Corpus.from_folder(tmp_path)
    assert corpus[0].id == "\ufffd.txt"
    assert corpus.fingerprint
