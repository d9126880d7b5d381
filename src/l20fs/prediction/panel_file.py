"""Text of a panel file: JSON with a hash of its content, and everything that is checked before its values are read."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from l20fs.prediction.panel_records import PanelError

#: Marks a panel among JSON files, and the version of what it holds.
SCHEMA, FORMAT = "l20fs-panel", 1
#: Largest file that is written or read.
MOST_BYTES = 2**26
#: Fields that come first in a file, for a reader; the order has no effect on the hash.
FIRST = ("schema", "format", "versions", "task", "targets", "classes", "transform", "k", "features", "substitutes")

WAY_OUT = "Name a panel.json that l20fs select or Panel.save wrote."


def content_hash(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of canonical JSON: names sorted, no spaces, ASCII only, numbers as Python writes them."""
    try:
        text = json.dumps(stored, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise _unwritable(error) from None
    return hashlib.sha256(text.encode()).hexdigest()


def write_text(stored: dict[str, Any]) -> str:
    """Return the text of a file, one line per field and the hash at the end."""
    ordered = {name: stored[name] for name in FIRST} | stored | {"sha256": content_hash(stored)}
    try:
        text = "{\n" + ",\n".join(f"{_dump(name)}: {_dump(value)}" for name, value in ordered.items()) + "\n}\n"
        n_bytes = len(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise _unwritable(error) from None
    if n_bytes > MOST_BYTES:
        raise PanelError(f"The panel would have {n_bytes} bytes, and {MOST_BYTES} are allowed. Use a smaller k.")
    return text


def read_text(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a file of this format, whose hash is right, without the hash."""
    if len(text) > MOST_BYTES:
        raise PanelError(f"The file has more than {MOST_BYTES} bytes, which no panel has. {WAY_OUT}")
    try:
        stored = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PanelError(f"This is no panel: {error}. {WAY_OUT}") from None
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise PanelError(f"This is no panel: it lacks the mark {SCHEMA!r}. {WAY_OUT}")
    version = stored.get("format")
    if version != FORMAT or not isinstance(version, int) or isinstance(version, bool):
        versions = stored.get("versions")
        writer = versions.get("l20fs") if isinstance(versions, dict) else None
        raise PanelError(
            f"The panel has format {_short(version)} and was written by l20fs {_short(writer)}; this version of l20fs reads "
            f"format {FORMAT}. Use the version that wrote it, or make the panel again."
        )
    if stored.pop("sha256", None) != content_hash(stored):
        raise PanelError(
            "The panel was damaged or changed after it was written: its sha256 is not that of its content. Make it again, "
            "or get it again from where it came."
        )
    return stored


def _dump(value: Any) -> str:
    """Return portable JSON: no NaN, no infinity."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict, and refuse a name that occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise PanelError("a name occurs twice in an object")
    return found


def _refuse_constant(name: str) -> Any:
    raise PanelError(f"it holds {name}, and a number has to be finite")


def _unwritable(error: Exception) -> PanelError:
    return PanelError(f"The panel holds what JSON cannot: {error}. Use finite numbers, texts and lists.")


def _short(value: Any) -> str:
    return ascii(value)[:40] if isinstance(value, str | int | float | None) else f"of type {type(value).__name__}"
