"""Text of a panel file: JSON with a hash of its content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from l20fs.prediction.panel_records import PanelError

#: Marks a panel among JSON files, and the version of what it holds.
SCHEMA, FORMAT = "l20fs-panel", 1
#: Largest file that is written or read.
MOST_BYTES = 2**26

WAY_OUT = "Name a panel.json that l20fs select or Panel.save wrote."


def content_hash(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of canonical JSON: names sorted, no spaces, ASCII only, numbers as Python writes them."""
    return hashlib.sha256(_as_json(stored, sort_keys=True).encode()).hexdigest()


def write_text(stored: dict[str, Any]) -> str:
    """Return the text of a file, one line per field: what tells its origin first, and the hash at the end."""
    ordered = {name: stored[name] for name in ("schema", "format", "versions")} | stored | {"sha256": content_hash(stored)}
    lines = (f"{_as_json(name)}: {_as_json(value, ensure_ascii=False)}" for name, value in ordered.items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text.encode()) > MOST_BYTES:
        raise PanelError(f"The panel would have {len(text)} bytes, and {MOST_BYTES} are allowed. Use a smaller k.")
    return text


def read_text(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a file of this format, whose hash is right, without the hash."""
    if len(text) > MOST_BYTES:
        raise PanelError(f"The file has more than {MOST_BYTES} bytes, which no panel has. {WAY_OUT}")
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PanelError(f"This is no panel: {error}. {WAY_OUT}") from None
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise PanelError(f"This is no panel: it lacks the mark {SCHEMA!r}. {WAY_OUT}")
    if repr(stored.get("format")) != repr(FORMAT):
        versions = stored.get("versions")
        writer = versions.get("l20fs") if isinstance(versions, dict) else None
        raise PanelError(
            f"The panel has format {ascii(stored.get('format'))[:40]} and was written by l20fs {ascii(writer)[:40]}; this "
            f"version of l20fs reads format {FORMAT}. Use the version that wrote it, or make the panel again."
        )
    if stored.pop("sha256", None) != content_hash(stored):
        raise PanelError(
            "The panel was damaged or changed after it was written: its sha256 is not that of its content. Make it again, "
            "or get it again from where it came."
        )
    return stored


def _as_json(value: Any, **options: Any) -> str:
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, **options)
        text.encode()  # half a character has no bytes
    except (ValueError, TypeError, RecursionError) as error:
        raise PanelError(f"The panel holds what JSON cannot: {error}. Use finite numbers, texts and lists.") from None
    return text
