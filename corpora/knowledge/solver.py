"""A second opinion: answers a question's plain form straight from the exported graph.

It knows networkx and nothing else of this package: a description is solved by following edges
from the terms inside it, and by intersecting what the clues give.
"""

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["solve"]


def solve(graph: "nx.MultiDiGraph[str]", question: Mapping[str, Any]) -> list[str]:
    """Return every answer that a question has, sorted; ``["unknown"]`` if it has none.

    Args:
        graph: As ``Graph.to_networkx`` gives it.
        question: As ``Question.to_dict`` gives it.
    """
    solved = [sorted(_denoted(graph, term)) for term in question["terms"]]
    kind, attributes = question["kind"], question["attributes"]
    data = graph.nodes
    if kind in ("simple", "chain", "conjunction", "parallel"):
        key = f"{attributes[0]}:text" if attributes else "name"
        return sorted({data[node][key] for nodes in solved for node in nodes}) or ["unknown"]
    if kind == "date":
        days = [
            {date.fromordinal(data[node][name]) for node in nodes}
            for nodes, name in zip(solved, attributes, strict=True)
        ]
        return sorted({str(abs((a - b).days)) for a in days[0] for b in days[1]}) or ["unknown"]
    if kind == "comparison":
        return _extreme(graph, {node for nodes in solved for node in nodes}, question)
    found = {
        other
        for node in solved[0]
        for other in _step(graph, node, question["relation"], backward=question["is_inverse"])
    }
    if kind == "count":
        return [str(len(found))]
    if kind == "superlative":
        return _extreme(graph, found, question)
    return sorted(data[node]["name"] for node in found) or ["unknown"]


def _denoted(graph: "nx.MultiDiGraph[str]", term: Mapping[str, Any]) -> set[str]:
    if "entity" in term:
        return {term["entity"]}
    fitting = [
        {
            other
            for target in _denoted(graph, clue["target"])
            for other in _step(graph, target, clue["relation"], backward=not clue["is_object"])
        }
        for clue in term["clues"]
    ]
    return {
        node for node in set.intersection(*fitting) if graph.nodes[node]["type"] == term["type"]
    }


def _step(graph: "nx.MultiDiGraph[str]", node: str, relation: str, *, backward: bool) -> set[str]:
    if backward:
        return {other for other, _, key in graph.in_edges(node, keys=True) if key == relation}
    return {other for _, other, key in graph.out_edges(node, keys=True) if key == relation}


def _extreme(
    graph: "nx.MultiDiGraph[str]", nodes: set[str], question: Mapping[str, Any]
) -> list[str]:
    name = question["attributes"][0]
    values = {node: graph.nodes[node][name] for node in nodes}
    if not values:
        return ["unknown"]
    best = (min if question["is_least"] else max)(values.values())
    return sorted(graph.nodes[node]["name"] for node in nodes if values[node] == best)
