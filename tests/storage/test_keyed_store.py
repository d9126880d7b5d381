"""Keyed store: nothing of other causes, nothing damaged, nothing written by halves."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from platforms import needs_posix

from l20fs.storage import keyed_store
from l20fs.storage.keyed_store import KeyedStore

VALUE = {"order": [7, 3, 5], "size": 2}


def arrays():
    return {"0": np.array([7, 3, 5], dtype=np.int32), "1.0": np.asfortranarray(np.eye(3)[:2]), "1.1": np.array(0.1)}


def make_store(folder, suffix=".json", **causes):
    return KeyedStore(folder, {"seed": 1} | causes, suffix=suffix)


def test_what_was_saved_is_loaded(tmp_path):
    store = make_store(tmp_path / "deep" / "folder")
    key = store.key("resample-00000", 0)
    assert store.load(key) is None
    store.save(key, VALUE)
    assert store.load(key) == VALUE
    assert store.load(store.key("resample-00000", 1)) is None
    (file,) = (tmp_path / "deep" / "folder").iterdir()  # no temporary file stays
    assert file == store.file(key)
    assert file.name.startswith("resample-00000-")
    assert json.loads(file.read_text())["value"] == VALUE


@pytest.mark.parametrize(
    "value", [[], {}, "", 0, 0.1, float("inf"), -0.0, {"b": 1, "a": {"2": None}}, [True, 1, 1.0], "\ud800é", {10: 1, 9: 2}]
)
def test_json_values_of_any_kind(tmp_path, value):
    store = make_store(tmp_path)
    store.save(store.key("cell"), value)
    loaded = store.load(store.key("cell"))
    assert json.dumps(loaded) == json.dumps(value)


def test_arrays_keep_their_type_shape_and_order(tmp_path):
    store = make_store(tmp_path, ".npz")
    key = store.key("pass", 3)
    assert store.load(key) is None
    store.save(key, arrays())
    loaded = store.load(key)
    assert list(loaded) == list(arrays())
    for name, array in arrays().items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        assert loaded[name].flags.f_contiguous == array.flags.f_contiguous
        np.testing.assert_array_equal(loaded[name], array)
    store.save(store.key("nothing"), {})
    assert store.load(store.key("nothing")) == {}


def test_labels_may_be_paths(tmp_path):
    store = make_store(tmp_path)
    store.save(store.key("brain/RFS-3.1", "RFS"), VALUE)
    (file,) = (tmp_path / "brain").iterdir()
    assert file.name.startswith("RFS-3.1-")
    assert store.load(store.key("brain/RFS-3.1", "RFS")) == VALUE


@pytest.mark.parametrize(("suffix", "value"), [(".json", VALUE), (".npz", arrays())])
def test_the_same_value_is_the_same_bytes(tmp_path, suffix, value):
    contents = []
    for name in ("one", "two"):
        store = make_store(tmp_path / name, suffix)
        store.save(store.key("x"), value)
        contents.append(store.file(store.key("x")).read_bytes())
    assert contents[0] == contents[1]


def test_c5_other_causes_are_never_mixed(tmp_path):
    store = make_store(tmp_path, X=np.eye(3))
    store.save(store.key("x", 0), VALUE)
    for found, others in ((True, {}), (False, {"seed": 2}), (False, {"X": 2 * np.eye(3)}), (False, {"more": None})):
        other = make_store(tmp_path, **{"X": np.eye(3)} | others)
        assert (other.load(other.key("x", 0)) is not None) == found, others
    for causes in ((1,), ("0",), (0.0,), (), (0, 0)):
        assert store.load(store.key("x", *causes)) is None


def test_c5_another_version_of_the_package_is_never_mixed(tmp_path, monkeypatch):
    store = make_store(tmp_path)
    store.save(store.key("x"), VALUE)
    monkeypatch.setattr(keyed_store, "version", lambda name: "99.0")
    other = make_store(tmp_path)
    assert other.load(other.key("x")) is None


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-5],
    "a digit": lambda content: content.replace(b"[7, 3", b"[7, 4"),
    "size": lambda content: content.replace(b'"size": 2', b'"size": 3'),
    "seal": lambda content: content.replace(b'"seal"', b'"deal"'),
    "no object": lambda content: b"[1, 2]",
    "words": lambda content: content.replace(b"7, 3", b'"x", 3'),
    "huge": lambda content: content.replace(b"7, 3", b"7" * 40 + b", 3"),
    "deep": lambda content: b"[" * 1100,
    "not text": lambda content: b"\xff\xfe" + content,
    "pickle": lambda content: pickle.dumps(VALUE),
    "endless": lambda content: content + b" " * 5000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_count_as_missing(tmp_path, damage):
    store = make_store(tmp_path)
    key = store.key("resample-00000", 0)
    store.save(key, VALUE)
    file = store.file(key)
    content = file.read_bytes()
    assert damage(content) != content
    file.write_bytes(damage(content))
    assert store.load(key, max_bytes=1000) is None
    store.save(key, VALUE)
    assert file.read_bytes() == content
    assert store.load(key, max_bytes=1000) == VALUE


def test_a_larger_file_than_allowed_is_not_read(tmp_path):
    for suffix, value in ((".json", VALUE), (".npz", arrays())):
        store = make_store(tmp_path, suffix)
        key = store.key("x")
        store.save(key, value)
        size = store.file(key).stat().st_size
        assert store.load(key, max_bytes=size - 1) is None
        assert store.load(key, max_bytes=size) is not None


def with_member(content, name, values):
    """Return an archive with other values in one array, as numpy writes them."""
    with np.load(io.BytesIO(content)) as stored:
        members = {member: stored[member] for member in stored.files} | {name: values}
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def compressed(content):
    stream = io.BytesIO()
    with np.load(io.BytesIO(content)) as stored:
        np.savez_compressed(stream, **{name: stored[name] for name in stored.files}, more=np.zeros(10**6))
    return stream.getvalue()


NPZ_DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-30],
    "a value": lambda content: with_member(content, "0", np.array([7, 3, 6], dtype=np.int32)),
    "a type": lambda content: with_member(content, "0", np.array([7, 3, 5], dtype=np.int64)),
    "a shape": lambda content: with_member(content, "0", np.array([[7, 3, 5]], dtype=np.int32)),
    "one more": lambda content: with_member(content, "2", np.zeros(1)),
    "objects": lambda content: with_member(content, "0", np.array([7, 3, 5], dtype=object)),
    "seal": lambda content: with_member(content, "seal", np.array("0" * 64)),
    "bytes": lambda content: content.replace(np.int32(5).tobytes(), np.int32(6).tobytes(), 1),
    "no archive": lambda content: b"PK\x03\x04" + bytes(100),
    "pickle": lambda content: pickle.dumps(VALUE),
}


@pytest.mark.parametrize("damage", NPZ_DAMAGES.values(), ids=NPZ_DAMAGES)
def test_damaged_archives_count_as_missing(tmp_path, damage):
    store = make_store(tmp_path, ".npz")
    key = store.key("pass", 0)
    store.save(key, arrays())
    file = store.file(key)
    content = file.read_bytes()
    assert damage(content) != content
    file.write_bytes(damage(content))
    assert store.load(key) is None


def test_an_archive_that_grows_is_not_unpacked(tmp_path, monkeypatch):
    store = make_store(tmp_path, ".npz")
    key = store.key("pass", 0)
    store.save(key, arrays())
    store.file(key).write_bytes(compressed(store.file(key).read_bytes()))

    reads, read = [], zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda *given: reads.append(given) or read(*given))
    assert store.load(key) is None
    assert not reads, "unpacked"


@pytest.mark.parametrize(("suffix", "value"), [(".json", VALUE), (".npz", arrays())])
def test_a_renamed_file_counts_as_missing(tmp_path, suffix, value):
    store = make_store(tmp_path, suffix)
    first, second = store.key("x", 0), store.key("x", 1)
    store.save(first, value)
    store.save(second, value)
    store.file(second).write_bytes(store.file(first).read_bytes())
    assert store.load(first) is not None
    assert store.load(second) is None


def test_a_folder_that_is_full(tmp_path, monkeypatch):
    store = make_store(tmp_path)
    store.save(store.key("x"), VALUE)

    def fail(file, write):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keyed_store, "write_atomically", fail)
    message = (
        r"cannot be written to \(No space left on device\)\. The results so far are kept: free disk space and run it again"
    )
    with pytest.raises(OSError, match=message):
        store.save(store.key("y"), VALUE)
    assert store.load(store.key("x")) == VALUE


def test_damaged_results_are_counted_and_told_once(tmp_path, caplog):
    store = make_store(tmp_path)
    keys = [store.key("x", number) for number in range(4)]
    for key in keys[:3]:
        store.save(key, VALUE)
    for key in keys[:2]:
        store.file(key).write_text("{}")
    for _ in range(2):
        assert store.load_all(keys) == [None, None, VALUE, None]
    assert store.load(keys[0]) is None
    assert caplog.messages == ["2 stored results were damaged and are computed again."]


def test_nothing_is_parsed_before_its_seal_is_verified(tmp_path, monkeypatch):
    store = make_store(tmp_path)
    key, other = store.key("x", 0), store.key("x", 1)
    store.save(other, {"accuracy": 1.0})
    store.file(key).write_bytes(store.file(other).read_bytes())  # sealed, but over another identity
    monkeypatch.setattr(keyed_store.json, "loads", lambda content: pytest.fail("parsed"))
    assert store.load(key) is None


@needs_posix
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_pipe_in_the_place_of_a_result_neither_blocks_nor_is_replaced(tmp_path, suffix):
    store = make_store(tmp_path, suffix)
    os.mkfifo(store.file(store.key("x")))
    assert store.load(store.key("x")) is None
    with pytest.raises(OSError, match="a pipe, and only a regular file is replaced"):
        store.save(store.key("x"), {})


@needs_posix
def test_the_store_may_be_a_link_but_no_link_in_it_is_followed(tmp_path):
    for name in ("real", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "brain").symlink_to(tmp_path / "elsewhere")
    store = make_store(tmp_path / "link")
    store.save(store.key("x"), VALUE)
    assert store.load(store.key("x")) == VALUE
    with pytest.raises(OSError, match="brain: a symbolic link, where a folder is needed"):
        store.save(store.key("brain/x"), VALUE)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_a_killed_run_left_is_swept(tmp_path):
    (tmp_path / "brain").mkdir()
    for folder in (tmp_path, tmp_path / "brain"):
        (folder / ".x.json.0123456789abcdef.part").write_text("half a fi")
    make_store(tmp_path)
    assert [file.name for file in tmp_path.rglob("*")] == ["brain"]


@pytest.mark.parametrize("shape", [(10**15,), (0, 10**9)])
def test_an_array_that_claims_to_be_huge_counts_as_missing(tmp_path, shape):
    store = make_store(tmp_path, ".npz")
    key = store.key("pass", 0)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(store.file(key), "w") as archive:
        archive.writestr("0.npy", header.getvalue())
        archive.writestr("seal.npy", header.getvalue())
    assert store.load(key) is None
