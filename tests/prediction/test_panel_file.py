"""Panel files: the same panel gives the same bytes, and whatever else is in a file is refused in one line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panel_samples import fitted

from l20fs import L20Classifier, Panel
from l20fs.prediction import panel_file
from l20fs.prediction.panel_file import content_hash
from l20fs.prediction.panel_records import LONGEST_NAME, PanelError


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


def in_gram(name, row, column, value, kind=3):
    """Change one of the sums over the samples."""
    sums = asdict(fitted(kind)[0])["cross_products"][name]
    sums[row][column] = value
    return in_part("cross_products", kind, **{name: sums})


def nested(n_levels):
    return {"a": nested(n_levels - 1) if n_levels else 0}


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


def test_too_large_a_file_is_refused_before_it_is_parsed(monkeypatch, tmp_path):
    monkeypatch.setattr(panel_file, "MOST_BYTES", 1000)
    assert "more than 1000 bytes" in refused(TEXT)
    with pytest.raises(PanelError, match="1000 are allowed"):
        fitted(3)[0].to_json()


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
    (lambda: changed(classes=None), "needs classes"),
    (lambda: changed(0, classes=["a", "b"]), "has no classes"),
    (lambda: changed(targets=[]), "targets is empty"),
    (lambda: changed(targets=["a", "b"]), "2 targets with classes"),
    (lambda: changed(features=["a"]), "the largest rule has 6 weights for 1 features"),
    (lambda: changed(k=7), "k is 7, for which there is no rule"),
    (lambda: changed(k=10**30), "for which there is no rule"),
    (lambda: changed(k=2.0), "k holds 2.0"),
    (lambda: changed(k=True), "k holds True"),
    (lambda: changed(rules=[]), "there is no rule"),
    (lambda: changed(rules=[{}]), "is no SizeRule"),
    (lambda: changed(task="clustering"), "task holds 'clustering'"),
    (lambda: changed(transform="exp"), "transform holds 'exp'"),
    (lambda: changed(schema="l20fs-report"), "lacks the mark"),
    (lambda: changed(surprise=1), "panel is no Panel: it does not know 'surprise'"),
    (lambda: changed(rules=[{"k": 1, "weights": []}]), "it lacks 'intercept'"),
    (lambda: changed(k=10**4000), "for which there is no rule"),
    (lambda: changed(provenance=nested(100)), "provenance has more than 20 levels"),
    (lambda: changed(provenance=nested(900)), "provenance has more than 20 levels"),
    (lambda: in_rule(-1, k=10**4000), "a size exceeds the number of its features"),
    (lambda: in_rule(-1, k=7), "a size exceeds the number of its features"),
    (lambda: changed(features=[1] * 6), "features holds 1"),
    (lambda: changed(features={"a": 1}), "features holds"),
    (lambda: changed(replaced={"a": "b\n"}), "replaced is not a name"),
    (lambda: changed(provenance=[]), "provenance holds"),
    (lambda: changed(versions={"l20fs": 1}), "versions holds 1"),
    (lambda: in_rule(1, k=1), "not in ascending order"),
    (lambda: in_rule(0, k=0), "not in ascending order from 1"),
    (lambda: in_rule(0, weights=[]), "a larger size has not more features"),
    (lambda: in_rule(0, weights=[[1.0]]), "has not 3 weights for each feature"),
    (lambda: in_rule(0, weights=[["1", "2", "3"]]), "weights holds '1'"),
    (lambda: in_rule(0, weights=[[10**400, 1, 1]]), "weights holds"),
    (lambda: in_rule(0, weights=[[None, 1, 1]]), "weights holds None"),
    (lambda: in_rule(0, intercept=[1.0]), "has not 3 intercepts"),
    (lambda: in_rule(0, intercept=[None, None, 1.0]), "lacks intercepts"),
    (lambda: in_rule(0, 2, intercept=[None]), "lacks intercepts"),
    (lambda: in_rule(0, 0, intercept=[None]), "lacks intercepts"),
    (lambda: in_rule(0, doubt=1.2), "has a doubt outside 0 to 1"),
    (lambda: in_rule(0, slope=-1.0), "negative slope"),
    (lambda: in_rule(0, farthest=-1.0), "negative distance"),
    (lambda: in_part("columns", mean=[]), "0 entries in mean"),
    (lambda: in_part("columns", divisor=[0.0] * 14), "a divisor is not above 0"),
    (lambda: in_part("columns", deviation=[-1.0] * 14), "a deviation is negative"),
    (lambda: in_part("columns", minimum=[1e300] * 14), "a minimum exceeds"),
    (lambda: in_part("cross_products", gram=[[1.0]]), "gram is no triangle of 14 columns"),
    (lambda: in_part("cross_products", class_gram=[[1.0]]), "class_gram is no triangle"),
    (lambda: in_part("cross_products", targets=[[1.0]]), "are not 14 x 3"),
    (lambda: in_part("cross_products", target_means=[]), "target_means has not 3"),
    (lambda: in_part("cross_products", target_factors=[]), "target_factors has not 3"),
    (lambda: in_part("cross_products", target_factors=[0.0, 1.0, 1.0]), "a factor of 0"),
    (lambda: in_part("cross_products", ridge=-1.0), "the ridge is negative"),
    (lambda: in_part("cross_products", fit_intercept=1), "fit_intercept holds 1"),
    (lambda: in_part("cross_products", class_means=[]), "class_means is not 3 x 14"),
    (lambda: in_part("cross_products", class_sizes=[1.0]), "class_sizes has not 3"),
    (lambda: in_part("cross_products", class_shares=[0.0] * 3), "class_shares are all 0"),
    (lambda: in_part("cross_products", class_shares=[1e300] * 3), "class_shares do not add up to 1"),
    (lambda: in_gram("gram", 0, 0, -5.0), "no samples have such cross-products"),
    (lambda: in_gram("gram", 1, 0, 1e6), "no samples have such cross-products"),
    (lambda: in_gram("gram", 1, 0, 1e308), "no samples have such cross-products"),
    (lambda: in_gram("class_means", 0, 0, 10**30), "no samples have such cross-products"),
    (lambda: in_gram("class_means", 0, 0, 10**300), "no samples have such cross-products"),
    (lambda: in_gram("gram", 1, 0, 1e6, kind=0), "no samples have such cross-products"),
]


@pytest.mark.parametrize(("make", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_a_file_that_is_not_consistent_is_refused_although_its_hash_is_right(make, fault):
    assert fault in refused(make())


def test_too_many_columns_of_cross_products_are_refused():
    panel = fitted(3)[0]
    more = [f"s{j}" for j in range(2000)]
    columns = {name: values + [1.0] * 2000 for name, values in asdict(panel.columns).items()}
    assert "2014 columns of cross-products are too many" in refused(
        changed(substitutes=panel.substitutes + more, columns=columns)
    )


def test_deep_provenance_is_refused_not_crashed_on():
    deep = "[" * 5000 + "]" * 5000
    text = TEXT.decode().replace('"provenance": {}', f'"provenance": {{"a": {deep}}}')
    assert text != TEXT.decode()
    refused(text)


def test_an_error_names_the_file(tmp_path):
    file = tmp_path / "report.json"
    file.write_text('{"title": "x"}')
    with pytest.raises(PanelError, match=r"report\.json': This is no panel: it lacks the mark"):
        Panel.load(file)
    with pytest.raises(FileNotFoundError):
        Panel.load(tmp_path / "nothing.json")


def test_values_that_json_cannot_hold_are_refused():
    panel = fitted(3)[0]
    for provenance in ({"a": float("nan")}, {"a": {1, 2}}, {"a": "\ud800"}):
        with pytest.raises(PanelError, match="holds what JSON cannot"):
            replace(panel, provenance=provenance).to_json()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    panel = fitted(3)[0]
    panel.save(tmp_path / "panel.json")
    with pytest.raises(PanelError):
        replace(panel, provenance={"a": float("nan")}).save(tmp_path / "panel.json")
    assert Panel.load(tmp_path / "panel.json") == panel
    assert [file.name for file in tmp_path.iterdir()] == ["panel.json"]


def test_names_of_any_script_are_kept():
    _, _, X, y = fitted(3)
    names = ["β-catenin", "名前", "a\"b'c\\d", "</script>", "=1+1", "a b", *"ghijklmn"]
    frame = pd.DataFrame(X, columns=names)
    model = L20Classifier(6).fit(frame, y)
    panel = Panel.from_json(model.to_panel(frame, y, n_substitutes=8).to_json())
    assert set(panel.features + panel.substitutes) == set(names)
    assert panel.predict(frame).tolist() == model.predict(frame).tolist()
