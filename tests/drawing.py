"""What is really drawn in a figure."""

from __future__ import annotations

from unittest.mock import patch

from matplotlib.text import Text


def drawn_texts(figure):
    """Draw the figure and return every text that was drawn in it; ticks outside the axes exist, but are not."""
    drawn = []

    def draw(text, renderer):
        drawn.append(text)
        return original(text, renderer)

    original = Text.draw
    with patch.object(Text, "draw", draw):
        figure.canvas.draw()
    return [text for text in drawn if text.get_text().strip() and text.get_visible()]
