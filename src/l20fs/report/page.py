"""The frame of all pages: one self-contained file, a strict content policy, embedded data and one script."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from l20fs.report.figures import shade
from l20fs.text import counted, joined, parted, shorten, small_percent, with_interval

if TYPE_CHECKING:
    from jinja2 import Environment

# A script element ends at the first "</script", and JavaScript once took these two signs for the end of a line.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def fill(template: str, *, scripts: tuple[str, ...], data: Any = None, **values: Any) -> str:
    """Return a page from a template.

    Parameters
    ----------
    template : str
        A file of ``templates/`` that extends ``base.html``.
    scripts : tuple of str
        Files of ``templates/`` that become the one script of the page.
    data : anything JSON can hold
        Data for the script.
    **values
        Values for the template.
    """
    style, script = _read("style.css"), "\n".join(_read(name) for name in scripts)
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            policy=policy, style=style, script=script, embedded=embedded(data), data=data, version=version("l20fs"), **values
        )
    )


def embedded(data: Any) -> str:
    """Return JSON that is safe inside a script element.

    Examples
    --------
    >>> embedded("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _source(text: str) -> str:
    """Return the source expression with which a content policy allows exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (files("l20fs.report") / "templates" / name).read_text(encoding="utf-8")


def estimate_text(estimate: Any, *, is_share: bool = True) -> str:
    """Write a value with its interval, without blanks at which a line could break."""
    if estimate is None or math.isnan(estimate[0]):
        return "not defined"
    value, lower, upper = estimate
    if not math.isfinite(upper - lower):
        return f"{100.0 * value:.0f}\N{NO-BREAK SPACE}%" if is_share else f"{value:.3g}"
    return with_interval(value, lower, upper, is_share=is_share).replace(" %", "\N{NO-BREAK SPACE}%")


def value_text(value: float, is_share: bool = True) -> str:
    """Write a value without an interval."""
    return estimate_text((value, math.nan, math.nan), is_share=is_share)


def _signed(z: float) -> str:
    """Write a z-score with its sign."""
    return f"{z:z.1f}".replace("-", "\N{MINUS SIGN}")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Report pages need jinja2: pip install 'l20fs[cli]', or jinja2 alone.") from None

    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = {"shorten": shorten, "parted": parted, "counted": counted, "joined": joined, "small_percent": small_percent}
    environment.filters |= filters | {"estimate": estimate_text, "value": value_text, "shade": shade, "signed": _signed}
    return environment
