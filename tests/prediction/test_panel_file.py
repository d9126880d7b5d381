"""Panel files: the same panel gives the same bytes, and whatever else is in a file is refused in one line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_samples import fitted

from l20fs import Panel
from l20fs.prediction.panel_file import LONGEST_NAME, PanelError, content_hash


def signed(stored):
    """Return the text of a file with a valid hash, whatever it holds."""
    stored = {name: value for name, value in stored.items() if name != "sha256"}
    return json.dumps(stored | {"sha256": content_hash(stored)})


def changed(kind=3, **fields):
    return signed(asdict(fitted(kind)[0]) | fields)


def in_rule(place=0, kind=3, **fields):
    rules = asdict(fitted(kind)[0])["rules"]
    rules[place] |= fields
    return changed(kind, rules=rules)


def in_part(part, kind=3, **fields):
    return changed(kind, **{part: asdict(fitted(kind)[0])[part] | fields})


def refused(text):
    """Return the error for a file, which is one line."""
    with pytest.raises(PanelError) as caught:
        Panel.from_json(text)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("kind", [2, 3, 0, -1])
def test_a_file_holds_all_of_a_panel(kind, tmp_path):
    panel = fitted(kind)[0]
    panel.save(tmp_path / "panel.json")
    loaded = Panel.load(tmp_path / "panel.json")
    assert loaded == panel
    assert loaded.sha256 == panel.sha256 == json.loads((tmp_path / "panel.json").read_text())["sha256"]
    again = fitted.__wrapped__(kind)[0]  # another fit
    assert again.to_json().encode() == (tmp_path / "panel.json").read_bytes()


def test_the_hash_is_that_of_canonical_json():
    stored = json.loads(fitted(3)[0].to_json())
    claimed = stored.pop("sha256")
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert claimed == hashlib.sha256(text.encode()).hexdigest()


def test_no_sample_is_stored():
    """Values of single samples are there as minima and maxima alone."""
    panel, _, X, _ = fitted(3)
    stored = json.dumps({name: value for name, value in asdict(panel).items() if name != "columns"})
    assert not [value for value in X.ravel().tolist() if repr(value) in stored]


TEXT = fitted(3)[0].to_json().encode()


@settings(max_examples=300)
@given(place=st.integers(0, len(TEXT) - 1), byte=st.integers(0, 255))
def test_a_changed_byte_never_changes_a_prediction(place, byte):
    panel = fitted(3)[0]
    text = TEXT[:place] + bytes([byte]) + TEXT[place + 1 :]
    try:
        found = Panel.from_json(text)
    except PanelError:
        return
    assert found == panel  # another space between values, or the byte that was there


@settings(max_examples=50)
@given(place=st.integers(0, len(TEXT) - 1))
def test_a_truncated_file_is_refused(place):
    if TEXT[place:].strip():
        refused(TEXT[:place])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'"l20fs-panel"',
        b"\x80\x81",
        b"\x00" * 100,
        b"PK\x03\x04",
        b"[" * 100_000,
        b'{"schema":' * 50_000,
        b'{"schema": "l20fs-panel", "schema": "l20fs-panel"}',
        b'{"title": "report", "format": 1, "k": 3}',
        b'{"schema": "l20fs-panel", "format": 1, "k": NaN}',
        b'{"schema": "l20fs-panel", "format": 1, "k": -Infinity}',
        b'{"schema": "l20fs-panel", "format": 1, "k": 1e999}',
        b"9" * 10_000,
        "\ud800",
        '{"schema": "\\ud800"}',
    ],
    ids=range(18),
)
def test_what_is_no_panel_is_refused(text):
    refused(text)


@pytest.mark.parametrize("version", [2, 0, "1", True, 1.0, None, [1]])
def test_another_format_is_refused_with_the_version_that_wrote_it(version):
    message = refused(changed(format=version, versions={"l20fs": "9.9"}))
    assert "written by l20fs '9.9'; this version of l20fs reads format 1" in message


def test_another_version_of_the_same_format_is_read():
    assert Panel.from_json(changed(versions={"l20fs": "9.9", "other": "1"})).versions["l20fs"] == "9.9"


def test_a_wrong_hash_is_refused():
    stored = json.loads(TEXT)
    stored["rules"][0]["weights"][0][0] *= 1.0 + 1e-15
    for claimed in (stored["sha256"], None, 3, [], ""):
        assert "sha256 is not that of its content" in refused(json.dumps(stored | {"sha256": claimed}))
    del stored["sha256"]
    assert "sha256 is not that" in refused(json.dumps(stored))


NAMES = ["", "  ", "x\n1", "x\x001", "x\x1b[31m", "x\u2028", "y" * (LONGEST_NAME + 1)]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_that_are_none_are_refused(name):
    panel = fitted(3)[0]
    assert "a name among features and substitutes" in refused(changed(features=[name, *panel.features[1:]]))
    assert "a name among classes" in refused(changed(classes=[name, *panel.classes[1:]]))
    assert "a name among targets" in refused(changed(targets=[name]))


FAULTS = [
    (lambda: changed(features=["x1"] * 6), "features and substitutes have a name twice"),
    (lambda: changed(classes=["a", "b", "a"]), "classes have a name twice"),
    (lambda: changed(classes=["a"]), "1 classes"),
    (lambda: changed(features=["a"]), "the largest rule has 6 weights for 1 features"),
    (lambda: changed(rules=[]), "there is no rule"),
    (lambda: changed(transform="exp"), "transform holds 'exp'"),
    (lambda: changed(surprise=1), "panel does not know 'surprise'"),
    (lambda: in_rule(0, weights=[]), "a larger size has not more features"),
    (lambda: in_rule(0, weights=[[1.0]]), "weights of k = 1 is not 1 x 3"),
    (lambda: in_rule(0, weights=[[None, 1, 1]]), "weights holds None"),
    (lambda: in_rule(0, intercept=[1.0]), "intercept of k = 1 is not 3"),
    (lambda: in_part("columns", mean=[]), "mean of the columns is not 14"),
    (lambda: in_part("cross_products", gram=[[1.0]]), "gram is no triangle of 14 columns"),
    (lambda: in_part("cross_products", target_factors=[]), "target_factors of the cross-products is not 3"),
    (lambda: in_part("cross_products", class_means=[]), "class_means of the cross-products is not 3 x 14"),
    (lambda: changed(classes=["a", "b", 3]), "classes are not all texts, or all numbers"),
    (lambda: changed(classes=[["a"], ["b"], ["c"]]), "classes are not all texts, or all numbers"),
]


@pytest.mark.parametrize(("make", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_a_file_that_is_not_consistent_is_refused_although_its_hash_is_right(make, fault):
    assert fault in refused(make())


def test_deep_provenance_is_refused_not_crashed_on():
    deep = "[" * 5000 + "]" * 5000
    text = TEXT.decode().replace('"provenance": {}', f'"provenance": {{"a": {deep}}}')
    assert text != TEXT.decode()
    refused(text)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    panel = fitted(3)[0]
    panel.save(tmp_path / "panel.json")
    with pytest.raises(PanelError):
        replace(panel, provenance={"a": float("nan")}).save(tmp_path / "panel.json")
    assert Panel.load(tmp_path / "panel.json") == panel
    assert [file.name for file in tmp_path.iterdir()] == ["panel.json"]
