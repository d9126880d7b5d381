"""The field of the page that finds any feature: what it says of each, by a slow twin, and how much room it takes."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from report_samples import EVIL, evil_content, make_content

from l20fs.report import Lookup
from l20fs.report.lookup import NOBODY, for_search


def expected(content, k, wanted):
    """Return the first ten features that hold a text, and the number of all, as Python tells it."""
    lookup = content.lookup
    names = [" ".join(name.split()) for name in lookup.names]
    found = [place for place, name in enumerate(names) if wanted.lower() in name.lower()]
    found.sort(key=lambda i: (names[i].lower() != wanted.lower(), not names[i].lower().startswith(wanted.lower()), i))
    return [told(content, k, place, names[place]) for place in found[:10]], len(found)


def told(content, k, place, name):
    lookup = content.lookup
    rank = lookup.ranks[place] if lookup.ranks else place + 1
    if not rank:
        return f"{name} has no rank: it does not vary, or was left out."
    text = f"{name}: rank {rank} of {lookup.n_ranked}, {'not ' * (rank > k)}among the best {k}."
    if lookup.entry is not None and place < len(lookup.entry):
        text += f" It enters at λ = {lookup.entry[place]:.4g}."
    elif lookup.entry is not None and rank > k:
        text += f" It does not enter the model, which was followed up to {lookup.n_followed} features."
    if rank <= content.k or not lookup.nearest:
        return text
    if abs(lookup.correlations[place]) < 0.5:
        return f"{text} None of the {content.k} that the run selected is like it."
    like, value = content.features[lookup.nearest[place]], lookup.correlations[place]
    return f"{text} Of the {content.k} that the run selected, most like it is {like} (correlation {value:.2f})."


def look_for(page, wanted):
    page.locator("#where-name").fill(wanted)
    return [" ".join(text.split()) for text in page.locator("#where-found li").all_text_contents()]


def test_every_feature_is_found_with_what_python_says(show):
    content = make_content(n_features=300, k=5, k_max=12)
    page = show(content)
    for k in (5, 12, 1):
        page.locator("#k-number").fill(str(k))
        page.keyboard.press("Tab")
        for wanted in ("gene 1", "GENE 12", "other 5", "r 299", "other 298", "other 2", "e", " OTHER 60 "):
            wanted_texts, n = expected(content, k, wanted.strip())
            assert look_for(page, wanted) == wanted_texts
            more = " The first 10 are shown." if n > 10 else ""
            assert page.locator("#where-status").text_content() == f"{n} of 300 features found.{more}"
    page.locator("#k-more").click()  # what is found follows the slider
    assert page.locator("#where-found li").first.text_content() == expected(content, 2, "other 60")[0][0]
    assert look_for(page, "no such feature") == []
    assert page.locator("#where-status").text_content() == "0 of 300 features found."
    assert look_for(page, "") == []
    assert page.locator("#where-status").text_content() == ""


def test_hostile_names_are_found_as_text(show):
    content = evil_content()
    page = show(content)
    for name in EVIL[:5]:
        assert look_for(page, name)[0].startswith(f"{' '.join(name.split())}: rank ")
    assert page.locator("#where-found img, #where-found svg").count() == 0


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


@pytest.mark.parametrize("room", [10**9, 20_000, 3_000])
def test_the_best_features_that_fit_are_packed(room):
    rng = np.random.default_rng(1)
    n = 5000
    names = [f"ENSG{code:011d}" for code in rng.permutation(60_000)[:n]]
    lookup = Lookup(
        names,
        n - 3,
        [*range(1, n - 2), 0, 0, 0],
        [0.5, None],
        2,
        rng.integers(-1, 20, n).tolist(),
        rng.uniform(-1, 1, n).round(2).tolist(),
    )
    found = for_search(lookup, room)
    assert len(found["names"]) + len(found["near"]) <= room
    shown = found["n"]
    assert shown == n if room == 10**9 else 0.9 * room < len(found["names"]) + len(found["near"])
    assert unpacked(found["names"]).decode().split("\n") == names[:shown]
    assert np.cumsum(json.loads(unpacked(found["steps"]))).tolist() == lookup.ranks[:shown]
    places, values = np.frombuffer(unpacked(found["near"]), np.uint8).reshape(2, shown).astype(int)
    is_like = (np.array(lookup.nearest) >= 0) & (np.abs(lookup.correlations) >= 0.5)
    assert places.tolist() == np.where(is_like, lookup.nearest, NOBODY)[:shown].tolist()
    assert np.allclose((values - 100)[is_like[:shown]] / 100, np.array(lookup.correlations)[:shown][is_like[:shown]])
