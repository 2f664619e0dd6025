"""A schema loads from a file, and one that no world can satisfy is refused with the reason."""

import copy
import json
import re
import sys

import pytest

from seekgym.corpora.errors import ConfigurationError, MissingExtraError
from seekgym.corpora.knowledge import KnowledgeWorld, Schema, encyclopedia, load_schema

HAMLETS = {
    "name": "hamlets",
    "types": {
        "person": {
            "plural": "people",
            "share": 0.8,
            "names": ["{g} {w}"],
            "leads": ["{s} is a person."],
        },
        "hamlet": {
            "plural": "hamlets",
            "share": 0.2,
            "names": ["{w}ton"],
            "leads": ["{s} is a hamlet."],
        },
    },
    "attributes": [
        {
            "name": "birth",
            "type": "person",
            "kind": "date",
            "low": 1800,
            "high": 1950,
            "noun": "date of birth",
            "says": ["{s} was born on {v}."],
        }
    ],
    "relations": [
        {
            "name": "home",
            "domain": "person",
            "range": "hamlet",
            "cardinality": "n-1",
            "share": 1.0,
            "noun": "home",
            "inverse": "villager",
            "says": ["{s} lives in {o}."],
            "inverse_says": ["{o} houses {s}."],
        },
        {
            "name": "teacher",
            "domain": "person",
            "range": "person",
            "cardinality": "n-1",
            "share": 0.5,
            "acyclic": True,
            "noun": "teacher",
            "inverse": "pupil",
            "says": ["{s} was taught by {o}."],
            "inverse_says": ["{o} taught {s}."],
        },
    ],
}


def changed(place, **fields):
    """Return the schema with fields of one entry changed."""
    values = copy.deepcopy(HAMLETS)
    entry = values
    for key in place:
        entry = entry[key]
    entry.update(fields)
    return values


def test_the_encyclopedia_is_as_large_as_it_says():
    schema = encyclopedia()
    assert (len(schema.types), len(schema.relations), len(schema.attributes)) == (15, 54, 26)
    assert {relation.cardinality for relation in schema.relations} == {"1-1", "1-n", "n-1", "n-n"}
    assert sum(relation.acyclic for relation in schema.relations) >= 8
    assert {attribute.kind for attribute in schema.attributes} == {"date", "count", "measure"}
    for relation in schema.relations:
        assert len(relation.says) >= 2
        assert len(relation.inverse_says) >= 2
    assert all(len(attribute.says) >= 2 for attribute in schema.attributes)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_schema_loads_from_a_file(tmp_path, suffix):
    path = tmp_path / f"hamlets.{suffix}"
    if suffix == "yaml":
        yaml = pytest.importorskip("yaml")
        path.write_text(yaml.safe_dump(HAMLETS, sort_keys=False))
    else:
        path.write_text(json.dumps(HAMLETS))
    assert load_schema(path) == Schema.from_mapping(HAMLETS)
    world = KnowledgeWorld(200, schema=path)
    assert len(world.tasks(20)) == 20


def test_yaml_without_pyyaml_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "hamlets.yaml"
    path.write_text("name: hamlets")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=re.escape("seekgym[yaml]")):
        load_schema(path)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (changed(["relations", 1], share=1.0), "'teacher' is acyclic and every 'person'"),
        (changed(["relations", 0], cardinality="1-1"), "'home' is 1-1, but more 'person'"),
        (changed(["relations", 0], acyclic=True), "'home' joins two types"),
        (changed(["relations", 0], gap_years=10), "'home' has gap_years, but an end has no date"),
        (changed(["relations", 1], gap_years=200), "can be 200 years older"),
        (changed(["relations", 0], domain="persn"), "did you mean 'person'"),
        (changed(["relations", 0], cardinality="n:1"), "unknown cardinality 'n:1'"),
        (changed(["relations", 0], share=0), "share must be above 0"),
        (changed(["relations", 0], says=["{s} lives here."]), "must hold"),
        (changed(["relations", 0], says=[]), "'home' has no sentence"),
        (changed(["relations", 1], says=["{s} lives in {o}."]), "'_ lives in _.' appears twice"),
        (changed(["relations", 1], name="home"), "relation 'home' appears twice"),
        (changed(["relations", 0], domian="person"), "did you mean 'domain'"),
        (changed(["attributes", 0], name="home"), "attribute 'home' of 'person' appears twice"),
        (changed(["attributes", 0], low=1960), "low 1960 must be below 1950"),
        (changed(["attributes", 0], low=0), "years must be within"),
        (changed(["attributes", 0], unit="years"), "a date has no unit"),
        (changed(["attributes", 0], kind="day"), "unknown attribute kind 'day'"),
        (changed(["types", "hamlet"], names=["Ton"]), "must hold {w} once"),
        (changed(["types", "hamlet"], names=["{w} and {w}"]), "must hold {w} once"),
        (changed(["types", "hamlet"], share=0), "share must be above 0"),
        (changed(["types", "hamlet"], leads=["A hamlet."]), "lead 'A hamlet.'"),
        (changed([], zipf=-1), "zipf must be between 0 and 3"),
        (changed([], relations=[]), "at least one type and one relation"),
        (changed([], types=[]), "a mapping with types"),
        (changed([], zipf="much"), "cannot be read"),
    ],
)
def test_what_cannot_be_satisfied_is_refused_with_the_reason(values, reason):
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        Schema.from_mapping(values)


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("b.yaml", "a: [")])
def test_a_broken_file_is_named(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=name):
        load_schema(tmp_path / name)
    with pytest.raises(ConfigurationError, match=r"missing\.json"):
        load_schema(tmp_path / "missing.json")
