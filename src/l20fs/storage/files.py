"""Atomic writing of files: whole or not at all, over regular files only; locked folders."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from l20fs.storage.regular_files import NotAFileError, kind_of

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

Writer = Callable[[BinaryIO], object]

#: Names of incomplete files, which nobody else gives to theirs.
PART = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.DOTALL)

#: List of the files that a run is putting in place, see :mod:`l20fs.storage.swap`.
JOURNAL = ".swap.json"

#: Bytes written to learn whether a folder can be written to: what results with a page take, which a disk or a quota that is
#: nearly full refuses.
TRIAL = 2**20


# --------------------------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True)
class Staged:
    """File that is complete, on disk and locked, beside its place."""

    file: Path
    part: Path
    sha256: str
    stream: BinaryIO

    def put(self) -> None:
        """Put the file in its place."""
        os.replace(self.part, self.file)
        self.stream.close()

    def drop(self) -> None:
        """Remove what was not put in place."""
        self.stream.close()
        with suppress(OSError):  # it is put in place, or will be swept
            self.part.unlink()


def write_atomically(file: str | os.PathLike[str], write: Writer) -> None:
    """Write a file atomically: ``write`` fills a temporary file that is then renamed.

    After an error an older ``file`` is unchanged. Only a regular file is replaced.
    """
    staged = stage(Path(file), write)
    try:
        staged.put()
    except OSError as error:
        raise write_error(staged.file, error) from error
    finally:
        staged.drop()
    sync_folder(staged.file.parent)


def stage(file: Path, write: Writer) -> Staged:
    """Write the content of a file beside its place, complete and on disk; an error leaves nothing."""
    refuse_irregular(file)
    try:
        stream, part = _open_part(file)
    except OSError as error:
        raise write_error(file, error) from error
    try:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
        stream.seek(0)
        digest = sha256_of(stream)
    except BaseException as error:
        with suppress(OSError):  # what is in the buffer does not fit, either
            stream.close()
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise write_error(file, error) from error
        raise
    if fcntl is None:  # pragma: no cover - Windows does not rename an open file
        stream.close()
    return Staged(file, part, digest, stream)


def _open_part(file: Path) -> tuple[BinaryIO, Path]:
    """Create a temporary file, with the permissions that the system gives to a new one, and lock it."""
    stem = file.name.encode(errors="ignore")[:100].decode(errors="ignore")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        part = file.parent / f".{stem}.{secrets.token_hex(8)}.part"
        descriptor = os.open(part, flags, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # else it was swept before it was locked
            return os.fdopen(descriptor, "w+b"), part
        os.close(descriptor)


def refuse_irregular(file: Path) -> None:
    """Raise an error for a folder, link, pipe, device or socket in the place of a file that is to be written."""
    try:
        mode = os.lstat(file).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode):
        raise NotAFileError(
            f"{file}: {kind_of(mode)}, and only a regular file is replaced. Name another file, or remove it."
        )


def sha256_of(stream: BinaryIO) -> str:
    """Return the SHA-256 of what is in an open file."""
    state = hashlib.sha256()
    while content := stream.read(2**20):
        state.update(content)
    return state.hexdigest()


def write_error(file: Path, error: OSError) -> OSError:
    """Return an error that names the file and its folder."""
    told = type(error)(
        f"{file} cannot be written ({reason_of(error)}). What was there before is unchanged: make room in {file.parent}"
        f"{os.sep}, or name another place."
    )
    told.errno = error.errno
    return told


def reason_of(error: BaseException) -> str:
    """Return the reason that the system gives, also for an error that was told in other words."""
    cause = error.__cause__
    return getattr(error, "strerror", None) or (reason_of(cause) if isinstance(cause, OSError) else str(error))


def sweep(folder: Path) -> None:
    """Remove the incomplete files that killed runs have left in a folder; those of a run that is alive are locked."""
    if os.path.lexists(folder / JOURNAL):
        return  # they are complete, and will be put in place
    with suppress(OSError), os.scandir(folder) as entries:
        parts = [entry.path for entry in entries if PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)]
        for part in parts:
            with suppress(OSError):
                _remove_if_dead(part)


def _remove_if_dead(part: str) -> None:
    if fcntl is None:  # pragma: no cover - Windows removes no open file
        os.unlink(part)
        return
    descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(part)
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------------------------------------------- folders


def check_writable(folder: Path, option: str = "-o", *, given: Path | None = None) -> None:
    """Raise an error for a folder that cannot be written to, or not be made, before any work is done.

    ``given`` is what the option was given, if it was not the folder.
    """
    named, place = f"{option} {folder if given is None else given}", folder
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        kind = "a link that leads nowhere" if place.is_symlink() and not place.exists() else "a file"
        if place == folder:
            raise NotADirectoryError(f"{named}: this is {kind}. Name a folder.")
        raise NotADirectoryError(f"{named}: {place} is {kind}, and no folder can be made in it. Name another folder.")
    try:
        with tempfile.TemporaryFile(dir=place) as stream:
            stream.write(bytes(TRIAL))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise OSError(f"{named}: {place} cannot be written to ({reason_of(error)}). Name another folder.") from error


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Create a folder and lock it against other processes within the context.

    The system releases the lock of a process that is killed, and no lock file is left in the folder. A folder that was
    created here and still holds no file after an error is removed again.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    release = _lock(folder)
    try:
        yield
    except BaseException:
        inside = [path for path in folder.iterdir() if path.is_dir()] if missing else []
        for path in (*inside, *missing):
            try:
                path.rmdir()
            except OSError:
                break
        raise
    finally:
        if release is not None:
            release()


def _lock(folder: Path) -> Callable[[], None] | None:
    """Lock a folder, and return a function that releases it; None if the system cannot."""
    if fcntl is None:
        return _lock_by_file(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise _locked(folder) from error
        return None  # some network file systems have no locks
    return partial(os.close, descriptor)


def _lock_by_file(folder: Path) -> Callable[[], None] | None:
    """Lock a folder of Windows, which cannot be opened, by a file in the temporary folder; None without filelock."""
    try:
        from filelock import FileLock, Timeout
    except ModuleNotFoundError:
        return None
    name = hashlib.sha256(os.path.normcase(folder.resolve()).encode(errors="surrogatepass")).hexdigest()
    lock = FileLock(Path(tempfile.gettempdir(), f"l20fs-{name[:32]}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise _locked(folder) from error
    return lock.release


def _locked(folder: Path) -> BlockingIOError:
    return BlockingIOError(f"{folder}: another run is writing into this folder. Wait until it ends, or name another folder.")


def sync_folder(folder: Path) -> None:
    """Make the new names in a folder durable; not every system can open a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
