"""Exchange of a whole set of files in a folder, which a kill at any moment leaves whole.

All files are on disk beside their places before a journal lists them. Without a journal the folder holds the old set; with
one, whoever opens the folder next puts the rest in place, and it holds the new set.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from l20fs.storage.files import (
    JOURNAL,
    PART,
    Staged,
    claimed,
    reason_of,
    refuse_irregular,
    sha256_of,
    sync_folder,
    write_atomically,
)
from l20fs.storage.regular_files import open_regular, read_regular

#: Largest journal; each of its lines has some 300 bytes.
MOST_BYTES = 2**22

SHA256 = re.compile(r"[0-9a-f]{64}")


def swap(folder: Path, staged: Iterable[Staged], removed: Iterable[str] = ()) -> None:
    """Put files in place together, and remove others."""
    staged = list(staged)
    try:
        journal = {
            "put": {each.file.name: [each.part.name, each.sha256] for each in staged},
            "remove": {name: digest_of(folder / name) for name in removed},
        }
        text = json.dumps(journal).encode()
        write_atomically(folder / JOURNAL, lambda stream: stream.write(text))
    except BaseException:
        if not (folder / JOURNAL).exists():  # an interrupt may come just after it took its place
            for each in staged:
                each.drop()
        raise
    finally:
        for each in staged:
            each.stream.close()
    try:
        _follow(folder, journal)
    except OSError as error:
        raise OSError(
            f"{folder}: not all new files could be put in place ({reason_of(error)}). They are kept in hidden files: "
            "the next command that uses this folder puts them in place."
        ) from error


def recover(folder: Path) -> None:
    """Finish the exchange of files of a run that was killed in the middle of it."""
    if not os.path.lexists(folder / JOURNAL):
        return
    with claimed(folder):
        recover_claimed(folder)


def recover_claimed(folder: Path) -> None:
    """Do the same in a folder that this process has locked."""
    journal = _read_journal(folder)
    if journal is not None:
        _follow(folder, journal)
    elif os.path.lexists(folder / JOURNAL):  # written by something else: it is written whole
        refuse_irregular(folder / JOURNAL)
        os.unlink(folder / JOURNAL)


def digest_of(file: Path) -> str:
    """Return the SHA-256 of the content of a regular file."""
    with open_regular(file) as stream:
        return sha256_of(stream)


def _follow(folder: Path, journal: dict[str, Any]) -> None:
    for name, (part, _) in journal["put"].items():
        if os.path.lexists(folder / part):  # else it is in place already
            refuse_irregular(folder / name)
            os.replace(folder / part, folder / name)
    for name, digest in journal["remove"].items():
        if _is_regular(folder / name) and digest_of(folder / name) == digest:
            os.unlink(folder / name)
    sync_folder(folder)
    os.unlink(folder / JOURNAL)
    sync_folder(folder)


def _read_journal(folder: Path) -> dict[str, Any] | None:
    """Return the journal of a folder; None if there is none, or if it was not written here."""
    try:
        journal = json.loads(read_regular(folder / JOURNAL, MOST_BYTES))
        put, removed = journal["put"], journal["remove"]
        is_ours = all(
            is_plain_name(name)
            and PART.fullmatch(part)
            and is_plain_name(part)
            and (not os.path.lexists(folder / part) or (_is_regular(folder / part) and digest_of(folder / part) == digest))
            for name, (part, digest) in put.items()
        )
        is_ours = is_ours and all(is_plain_name(name) and SHA256.fullmatch(digest) for name, digest in removed.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {"put": put, "remove": removed} if is_ours else None


def is_plain_name(name: Any) -> bool:
    """Return whether something is the name of a file in a folder, and no path."""
    return isinstance(name, str) and name not in ("", ".", "..") and not re.search(r"[/\\\0]", name)


def _is_regular(file: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(file).st_mode)
    except (OSError, ValueError):
        return False
