"""Draw a small knowledge world: its graph, and two of its articles beside it.

Run: python docs/draw_world.py > docs/knowledge.svg
"""

import html
import textwrap

import networkx as nx

from seekgym.corpora.knowledge import KnowledgeWorld

WIDTH, HEIGHT, SIDE = 1180, 640, 430
COLORS = ("#2563eb", "#059669", "#b45309", "#7c3aed", "#dc2626", "#0891b2", "#6b7280", "#be185d")


def main() -> None:
    """Print the drawing."""
    world = KnowledgeWorld(entities=60, world_seed=4)
    graph = world.graph()
    hub = max(sorted(graph), key=lambda node: graph.degree(node))
    near = [hub, *sorted({n for pair in graph.edges(hub) for n in pair} - {hub})]
    near += sorted(set(graph.predecessors(hub)) - set(near))
    part = graph.subgraph(near[:10])
    places = nx.spring_layout(nx.Graph(part), seed=3, k=1.6)
    kinds = sorted({part.nodes[node]["type"] for node in part})
    xs = {
        node: (SIDE + 110 + (x + 1) / 2 * (WIDTH - SIDE - 220), 50 + (y + 1) / 2 * (HEIGHT - 100))
        for node, (x, y) in places.items()
    }
    lines = []
    for start, end, relation in sorted(part.edges(keys=True)):
        (x1, y1), (x2, y2) = xs[start], xs[end]
        lines.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#d1d5db"/>'
            f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2:.0f}" fill="#6b7280" '
            f'font-size="10" text-anchor="middle">{html.escape(str(relation))}</text>'
        )
    for node, (x, y) in sorted(xs.items()):
        color = COLORS[kinds.index(part.nodes[node]["type"]) % len(COLORS)]
        lines.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="7" fill="{color}"/>'
            f'<text x="{x:.0f}" y="{y - 12:.0f}" text-anchor="middle" font-weight="600">'
            f"{html.escape(part.nodes[node]['name'])}</text>"
        )
    lines += articles(world, near[:2])
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="DejaVu Sans, sans-serif" font-size="12" fill="#1f2937">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(lines)}</svg>'
    )


def articles(world: KnowledgeWorld, ids: list[str]) -> list[str]:
    """Return the articles as lines of text."""
    lines, y = [], 34
    for document_id in ids:
        document = world.corpus[document_id]
        rows = [(document.title, 'font-weight="700" font-size="14"'), (document.url or "", "")]
        for paragraph in document.text.split("\n\n"):
            rows += [(row, "") for row in textwrap.wrap(paragraph, 62)] + [("", "")]
        if len(rows) > 20:
            rows[20:] = [("…", "")]
        for row, style in rows:
            lines.append(f'<text x="20" y="{y}" {style}>{html.escape(row)}</text>')
            y += 15
        y += 16
    return lines


if __name__ == "__main__":
    main()
