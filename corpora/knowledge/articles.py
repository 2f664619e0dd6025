"""The articles of a world: one an entity, rendered when it is asked for, and side documents.

An article has a lead paragraph and then its facts in an order of its own, each in one of the
schema's published sentences, with the entity's name or a pronoun. Between them stand distractors:
true statements about entities of the same type, and plain mentions. A side document repeats
outdated claims and says so in its first sentence.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from ..documents import Corpus, Document
from .graph import Graph, WorldSettings, document_id, value_text
from .schema import Attribute, Relation

__all__ = ["SUPERSEDED", "Claim", "KnowledgeCorpus", "Statement"]

SUPERSEDED = "is superseded and kept for the record only."
_FORMAT = 1  # raise it when an article changes by a byte
_LEAST_WORDS = 84
_CLAIMS = 4
_PARAGRAPH = 4  # sentences
_MENTIONS = (
    "Readers of this article often look up {x} as well.",
    "The name is sometimes confused with that of {x}.",
    "An older catalogue files this entry next to {x}.",
    "The archives mention {x} in the same volume.",
    "There is no known connection with {x}.",
)
_CLOSINGS = (
    "The editors have since examined the sources and replaced every line of it.",
    "None of this should be relied upon without the current article.",
    "It was copied by hand from an almanac whose compilers are not known.",
    "Later research did not bear it out.",
    "The page is left standing so that old references do not break.",
    "A corrected version was printed in the next edition of the almanac.",
    "Readers are asked to consult the article that took its place instead.",
    "The misprints of the almanac were a matter of some amusement in their day.",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What one sentence states.

    Attributes:
        entity: Whom the sentence is about.
        relation: The relation, or None for an attribute.
        attribute: The attribute, or None for a relation.
        is_inverse: The entity is the object.
        others: The entities at the other end.
    """

    entity: int
    relation: Relation | None = None
    attribute: Attribute | None = None
    is_inverse: bool = False
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a side document wrongly says: an object or a value that is not the entity's."""

    entity: int
    relation: Relation | None = None
    attribute: Attribute | None = None
    other: int = -1
    number: int = 0


class KnowledgeCorpus(Corpus):
    """A world's articles, then its side documents, as a corpus that holds no text.

    Args:
        graph: What is true.
        settings: What decides where it is stated.
        texts: If given, an article begins with the entity's text, and states one edge a sentence;
            there are no distractors. For real graphs.
        name: What the corpus is called.
    """

    def __init__(
        self,
        graph: Graph,
        settings: WorldSettings,
        *,
        texts: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.graph = graph
        self.settings = settings
        self.texts = texts
        self._stream = 4 * settings.world_seed  # and the next three
        self.outdated = _outdated(len(graph), settings)
        ids = [document_id(entity) for entity in range(len(graph))]
        ids += [f"n{entity}" for entity in self.outdated]
        schema = asdict(graph.schema)
        described = json.dumps([_FORMAT, schema, asdict(settings)], sort_keys=True)
        fingerprint = hashlib.sha256(described.encode()).hexdigest() if texts is None else None
        name = name or f"{graph.schema.name}-{settings.split}-{settings.world_seed}"
        super().__init__(ids, self._write, name=name, fingerprint=fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the articles are written from."""
        build = partial(KnowledgeCorpus, texts=self.texts, name=self.name)
        return build, (self.graph, self.settings)

    def statements(self, entity: int) -> list[Statement]:
        """Return what an entity's article states about it, in the schema's order."""
        graph, kind = self.graph, self.graph.type_of(entity).name
        stated = [
            Statement(entity, attribute=attribute) for attribute in graph.schema.attributes_of(kind)
        ]
        for name in graph.relations_from(kind):
            edges = graph.edges[name]
            objects = tuple(
                edges.objects[e] for e in edges.out_edges(entity) if edges.in_subject[e]
            )
            if objects:
                stated.append(Statement(entity, graph.schema.relation[name], others=objects))
        for name in graph.relations_to(kind):
            edges = graph.edges[name]
            subjects = tuple(
                edges.subjects[e] for e in edges.in_edges(entity) if edges.in_object[e]
            )
            if subjects:
                relation = graph.schema.relation[name]
                stated.append(Statement(entity, relation, is_inverse=True, others=subjects))
        return stated

    def distractors(self, entity: int) -> list[Statement]:
        """Return what an entity's article states about another entity: one edge at most."""
        if self.texts is not None:
            return []
        graph, block = self.graph, self.graph.blocks[self.graph.type_of(entity).name]
        other = block[next(_draws(entity, self._stream + 1)) % len(block)]
        if other == entity:
            return []
        for name in graph.relations_from(graph.type_of(entity).name):
            objects = graph.others(other, name, is_inverse=False)
            if objects:
                return [Statement(other, graph.schema.relation[name], others=(objects[0],))]
        return []

    def claims(self, entity: int) -> list[Claim]:
        """Return what an entity's side document wrongly says."""
        graph, kind = self.graph, self.graph.type_of(entity).name
        draws = _draws(entity, self._stream + 2)
        claims = []
        for name in graph.relations_from(kind):
            relation = graph.schema.relation[name]
            true, block = graph.others(entity, name, is_inverse=False), graph.blocks[relation.range]
            other = block[next(draws) % len(block)]
            if true and other not in (*true, entity):
                claims.append(Claim(entity, relation, other=other))
        del claims[_CLAIMS:]
        for attribute in graph.schema.attributes_of(kind)[:1]:
            number = graph.number(entity, attribute.name) + 1 + next(draws) % 400
            claims.append(Claim(entity, attribute=attribute, number=number))
        return claims

    def _write(self, position: int) -> Document:
        if position >= len(self.graph):
            return self._write_side(self.outdated[position - len(self.graph)])
        name = self.graph.name(position)
        statements, distractors = self.statements(position), self.distractors(position)
        if self.texts is None:
            text, mentioned = self._write_prose(position, statements, distractors)
        else:
            text, mentioned = self._write_plain(position, statements), []
        linked = [other for stated in statements for other in stated.others]
        linked += [end for stated in distractors for end in (stated.entity, *stated.others)]
        links = dict.fromkeys(other for other in linked + mentioned if other != position)
        return Document(
            document_id(position), name, text, self.url(position), tuple(map(document_id, links))
        )

    def url(self, entity: int) -> str:
        """Return the address of an entity's article."""
        return f"https://{self.name}.example/{quote(self.graph.name(entity).replace(' ', '_'))}"

    def ids_by_url(self) -> dict[str, str]:
        """Return the id of the document at every address."""
        count = len(self.graph)
        ids = {self.url(entity): document_id(entity) for entity in range(count)}
        sides = (self[position] for position in range(count, len(self)))
        return ids | {side.url: side.id for side in sides if side.url is not None}

    def _write_plain(self, entity: int, statements: list[Statement]) -> str:
        assert self.texts is not None
        draws, name = _draws(entity, 0), self.graph.name(entity)
        lines = [
            self._say(Statement(entity, s.relation, None, s.is_inverse, (other,)), name, draws)
            for s in statements
            for other in s.others
        ]
        return "\n\n".join(filter(None, (self.texts[entity], " ".join(lines))))

    def _write_prose(
        self, entity: int, statements: list[Statement], distractors: list[Statement]
    ) -> tuple[str, list[int]]:
        kind, name = self.graph.type_of(entity), self.graph.name(entity)
        draws = _draws(entity, self._stream)
        pronoun = kind.pronouns[next(draws) % len(kind.pronouns)]
        lead = [_choose(kind.leads, draws).replace("{s}", name)]
        lead += [self._say(stated, pronoun, draws) for stated in statements[:1]]
        rest = statements[1:] + distractors
        _shuffle(rest, draws)
        body, mentioned = [], []
        for place, stated in enumerate(rest):
            own = stated.entity == entity
            is_named = place % _PARAGRAPH == 0 or not own or next(draws) % 2
            who = self.graph.name(stated.entity) if is_named else pronoun
            body.append(self._say(stated, who, draws))
        words = sum(sentence.count(" ") + 1 for sentence in lead + body)
        while words < _LEAST_WORDS:
            other = (entity + 1 + next(draws) % (len(self.graph) - 1)) % len(self.graph)
            body.append(_choose(_MENTIONS, draws).replace("{x}", self.graph.name(other)))
            mentioned.append(other)
            words += body[-1].count(" ") + 1
        paragraphs = [lead] + [body[i : i + _PARAGRAPH] for i in range(0, len(body), _PARAGRAPH)]
        return "\n\n".join(map(" ".join, paragraphs)), mentioned

    def _say(self, stated: Statement, who: str, draws: Iterator[int]) -> str:
        """Put a statement into one of its sentences; a pronoun stands only at the beginning."""
        slot = "{o}" if stated.is_inverse else "{s}"
        if stated.relation is not None:
            relation = stated.relation
            form = _choose(relation.inverse_says if stated.is_inverse else relation.says, draws)
            others = _listed([self.graph.name(other) for other in stated.others])
            form = form.replace("{s}" if stated.is_inverse else "{o}", others)
        elif stated.attribute is not None:
            form = _choose(stated.attribute.says, draws)
            form = form.replace("{v}", self.graph.value(stated.entity, stated.attribute))
        return form.replace(slot, who if form.startswith(slot) else self.graph.name(stated.entity))

    def _write_side(self, entity: int) -> Document:
        graph, name = self.graph, self.graph.name(entity)
        draws = _draws(entity, self._stream + 3)
        sentences, links = [f"This entry on {name} {SUPERSEDED}"], [entity]
        for claim in self.claims(entity):
            if claim.relation is not None:
                form = _choose(claim.relation.says, draws)
                said = form.replace("{o}", graph.name(claim.other))
                links.append(claim.other)
            else:
                assert claim.attribute is not None
                value = value_text(claim.attribute, claim.number)
                said = _choose(claim.attribute.says, draws).replace("{v}", value)
            sentences.append(said.replace("{s}", name))
        sentences += _CLOSINGS
        return Document(
            f"n{entity}",
            f"{name} (superseded entry)",
            " ".join(sentences),
            f"{self.url(entity)}?superseded",
            tuple(map(document_id, dict.fromkeys(links))),
        )


def _outdated(entities: int, settings: WorldSettings) -> list[int]:
    """Return the entities with a side document, evenly spread."""
    number = round(settings.noise * entities)
    return [place * entities // number for place in range(number)]


def _draws(entity: int, stream: int) -> Iterator[int]:
    """Give numbers below 2**32 that depend on entity and stream alone (SplitMix64).

    Steele, Lea & Flood 2014, "Fast Splittable Pseudorandom Number Generators".
    """
    state = entity * 0xD1342543DE82EF95 + stream * 0xA0761D6478BD642F
    while True:
        state = (state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        yield mixed >> 32


def _choose(forms: Sequence[str], draws: Iterator[int]) -> str:
    return forms[next(draws) % len(forms)]


def _shuffle(items: list[Statement], draws: Iterator[int]) -> None:
    for last in range(len(items) - 1, 0, -1):
        chosen = next(draws) % (last + 1)
        items[last], items[chosen] = items[chosen], items[last]


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
