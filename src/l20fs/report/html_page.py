"""The frame of all pages: one self-contained file, a strict content policy, embedded data and one script."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from l20fs.text import parted, shorten

if TYPE_CHECKING:
    from jinja2 import Environment

# A script element ends at the first "</script", and JavaScript once took these two signs for the end of a line.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def fill(template: str, *, scripts: tuple[str, ...], data: Any = None, images: str = "data:", **values: Any) -> str:
    """Return a page from a template.

    Parameters
    ----------
    template : str
        A file of ``templates/`` that extends ``base.html``.
    scripts : tuple of str
        Files of ``templates/`` that become the one script of the page.
    data : anything JSON can hold
        Data for the script.
    images : str
        Allowed sources of pictures.
    **values
        Values for the template.
    """
    style, script = _read("style.css"), "\n".join(_read(name) for name in scripts)
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; img-src {images}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(policy=policy, style=style, script=script, data=embedded(data), version=version("l20fs"), **values)
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


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Report pages need jinja2: pip install 'l20fs[cli]', or jinja2 alone.") from None

    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["shorten"] = shorten
    environment.filters["parted"] = parted
    return environment
