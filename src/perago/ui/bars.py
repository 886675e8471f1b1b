"""Small pictures that stand in a row of a table."""

from __future__ import annotations

from markupsafe import Markup

_WIDTH, _HEIGHT = 160.0, 10.0


def share_bar(value: float, longest: float) -> Markup:
    """Draw a bar as long as its share of the longest; the number stands beside it."""
    width = _WIDTH * (value / longest) if longest > 0 else 0.0
    return Markup(
        '<svg class="share" viewBox="0 0 {:.0f} {:.0f}" aria-hidden="true">'
        '<rect class="part" width="{:.1f}" height="{:.0f}" rx="1"/></svg>'
    ).format(_WIDTH, _HEIGHT, max(width, 1.0), _HEIGHT)
