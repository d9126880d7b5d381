"""Graphs of Mermaid as pictures: the flowchart of CONTRIBUTING.md is drawn when the site is built, and no script is loaded.

Only what that flowchart has is understood: nodes with a text in brackets, plain and thick arrows, several nodes with ``&``.
Nodes stand in layers, by the longest way from above; arrows that pass a layer have a place in it.
"""

from __future__ import annotations

import html
import itertools
import re
from statistics import mean
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH, HEIGHT, GAP, BEND, ROOM = 150, 44, 18, 62, 16


class Edge(NamedTuple):
    """An arrow between two nodes, with its text; thick or not."""

    start: str
    end: str
    text: str
    is_thick: bool


def parse(text: str) -> tuple[dict[str, list[str]], list[Edge]]:
    """Return the nodes with the lines of their labels, and the edges of a flowchart.

    Examples
    --------
    >>> parse('a --> b["b<br>second"] & c')
    ({'a': ['a'], 'b': ['b', 'second'], 'c': ['c']}, [Edge(start='a', end='b', text='', is_thick=False), \
Edge(start='a', end='c', text='', is_thick=False)])
    """
    labels = {name: label.split("<br>") for name, label in re.findall(r'(\w+)\["([^"]+)"\]', text)}
    edges = []
    for line in re.sub(r"\[[^\]]*\]", "", text).splitlines():
        found = re.fullmatch(r'\s*([\w &]+?) (-->|==>)(?:\|"?([^|"]*)"?\|)? ?([\w &]+)', line)
        if found:
            starts, arrow, words, ends = found.groups()
            pairs = itertools.product(starts.split(" & "), ends.split(" & "))
            edges += [Edge(start, end, words or "", arrow == "==>") for start, end in pairs]
    names = dict.fromkeys(itertools.chain.from_iterable((edge.start, edge.end) for edge in edges))
    return {name: labels.get(name, [name]) for name in names}, edges


def layers_of(names: list[str], edges: list[Edge]) -> dict[str, int]:
    """Return the layer of each node: the number of arrows of the longest way that leads to it."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        for edge in edges:
            layer[edge.end] = max(layer[edge.end], layer[edge.start] + 1)
    return layer


def arrange(layer: dict[str, int], edges: list[Edge]) -> tuple[dict[str, float], list[list[str]]]:
    """Return the horizontal place of each point, and the points that each arrow passes, by the means of their neighbours."""
    ways, rows = [], [[name for name in layer if layer[name] == i] for i in range(max(layer.values()) + 1)]
    for number, edge in enumerate(edges):
        passed = [f"{number}:{i}" for i in range(layer[edge.start] + 1, layer[edge.end])]
        for i, point in enumerate(passed, start=layer[edge.start] + 1):
            rows[i].append(point)
        ways.append([edge.start, *passed, edge.end])
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for upper, lower in (pair for way in ways for pair in itertools.pairwise(way)):
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    place = spread(rows, {})
    for turn in range(24):
        near = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wish = {point: mean(place[other] for other in near.get(point, [point])) for point in row}
            row.sort(key=wish.__getitem__)
            place.update(spread([row], wish))
    return place, ways


def spread(rows: list[list[str]], wish: dict[str, float]) -> dict[str, float]:
    """Return places that are as wished where there is room: points in order, none too close to the one before it."""
    place: dict[str, float] = {}
    for row in rows:
        at = [wish.get(point, i * (WIDTH + GAP)) for i, point in enumerate(row)]
        for _ in range(200):
            for i in range(1, len(row)):
                wanted = (width(row[i - 1]) + width(row[i])) / 2 + GAP
                lacking = wanted - (at[i] - at[i - 1])
                if lacking > 0:
                    at[i - 1] -= lacking / 2
                    at[i] += lacking / 2
        place.update(zip(row, at, strict=True))
    return place


def width(point: str) -> int:
    """Return the room that a node, or an arrow that passes, takes."""
    return 10 if ":" in point else WIDTH


def svg(text: str, title: str) -> str:
    """Return the picture of a flowchart."""
    labels, edges = parse(text)
    layer = layers_of(list(labels), edges)
    place, ways = arrange(layer, edges)
    left = min(place[point] - width(point) / 2 for point in place) - ROOM
    right = max(place[point] + width(point) / 2 for point in place) + ROOM
    bottom = max(layer.values()) * (HEIGHT + BEND) + HEIGHT + 2 * ROOM
    box_of_view = f"{left:.0f} {-ROOM} {right - left:.0f} {bottom}"
    parts = [
        f'<svg class="house" role="img" aria-label="{html.escape(title)}" viewBox="{box_of_view}"',
        ' xmlns="http://www.w3.org/2000/svg"><defs><marker id="house-arrow" viewBox="0 0 8 8" refX="7" refY="4"',
        ' markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/>',
        "</marker></defs>",
    ]
    for edge, way in zip(edges, ways, strict=True):
        top = layer[edge.start] * (HEIGHT + BEND) + HEIGHT
        parts.append(curve([place[point] for point in way], top, edge))
    for name, lines in labels.items():
        parts.append(box(place[name], layer[name] * (HEIGHT + BEND), lines))
    return "".join(parts) + "</svg>"


def curve(places: list[float], top: float, edge: Edge) -> str:
    """Return an arrow through places in consecutive layers."""
    path, y = f"M{places[0]:.1f} {top}", top
    for i, (here, there) in enumerate(itertools.pairwise(places)):
        end = y + BEND
        path += f"C{here:.1f} {y + BEND / 2} {there:.1f} {end - BEND / 2} {there:.1f} {end}"
        y = end
        if i < len(places) - 2:
            y += HEIGHT
            path += f"V{y}"
    drawn = f'<path class="{"thick" if edge.is_thick else "thin"}" d="{path}" marker-end="url(#house-arrow)"/>'
    if edge.text:
        middle = (places[0] + places[1]) / 2
        drawn += f'<text class="words" x="{middle:.1f}" y="{top + BEND / 2 + 4}">{html.escape(edge.text)}</text>'
    return drawn


def box(middle: float, top: float, lines: list[str]) -> str:
    """Return a node: its name, and what is written below it."""
    start = top + HEIGHT / 2 + (5 if len(lines) == 1 else -3)
    texts = "".join(
        f'<text class="{"name" if i == 0 else "line"}" x="{middle:.1f}" y="{start + 15 * i}">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return f'<rect x="{middle - WIDTH / 2:.1f}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>{texts}'


class Mermaid(SphinxDirective):
    """A flowchart, drawn here."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        picture = svg("\n".join(self.content), "The rooms of the package, and which of them import which")
        return [nodes.raw("", f'<div class="house-frame" tabindex="0">{picture}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
