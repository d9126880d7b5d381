"""Which classes are mixed up: the most frequent confusions and the recall of each class, in words, lists and bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_samples import make_content

from l20fs.report import ClassRate
from l20fs.report.confusion import MOST_PAIRS, confused_pairs, in_words, least_recognised


@pytest.mark.parametrize("seed", range(5))
def test_the_most_frequent_confusions_are_those_of_the_matrix(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    counts = rng.poisson(1.0, (n + seed % 2, n))  # a last row may be of a class that is not known
    slow = []
    for truth in range(len(counts)):
        for predicted in range(n):
            if truth != predicted and counts[truth, predicted]:
                slow.append((truth, predicted, int(counts[truth, predicted]), int(counts[truth].sum())))
    slow.sort(key=lambda pair: (-pair[2], -pair[2] / pair[3], pair[0], pair[1]))
    assert confused_pairs(counts.tolist()) == slow[:MOST_PAIRS]


def test_no_confusion_is_told_too():
    assert in_words(confused_pairs([[3, 0], [0, 4]]), "ab", "ab") == [["No sample is taken for one of another class."]]
    assert "".join(in_words([(0, 1, 1, 1)], "ab", "ab")[0]) == "Of 1 a sample 1 is taken for b (100.0 %)."
    assert least_recognised([ClassRate((1.0, 0.5, 1.0), None, 4), ClassRate(None, None, 0)], "ab") == []
    assert least_recognised([ClassRate((0.5, 0.1, 0.9), None, 4), ClassRate((0.5, 0.2, 0.8), None, 8)], "ab") == []
    rates = [ClassRate((share, 0.0, 1.0), None, 4) for share in (0.75, 0.5, 0.5, 0.5)]
    assert "".join(least_recognised(rates, "abcd")[0]) == "b and 2 other classes are recognised least: 50.0 %."


def lines(page, selector):
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def recall_words(content, k):
    recall, place = min((rate.sensitivity, place) for place, rate in enumerate(content.rates[k - 1]))
    value, lower, upper = (f"{100 * end:.0f}" for end in recall)
    size = content.rates[k - 1][place].n_samples
    return f"{content.classes[place]} is recognised least: {value} % ({lower} to {upper} %) of its {size} samples."


@pytest.mark.parametrize("n_classes", [4, 40])
def test_words_follow_the_slider_and_many_classes_have_a_list(show, n_classes):
    content = make_content(n_classes=n_classes, n_samples=40 * n_classes // 4, k=3, k_max=6)
    rates = [[ClassRate((0.125, 0.02, 0.4), None, 8), *others[1:]] for others in content.rates]
    content = replace(content, rates=rates)
    page = show(content)
    for k in (3, 6, 1):
        page.locator("#k-number").fill(str(k))
        page.keyboard.press("Tab")
        pairs = content.confusions(k)
        assert lines(page, "#confused-items li") == [
            *(
                f"Of {total} {content.classes[a]} samples {n} {'is' if n == 1 else 'are'} taken for {content.classes[b]} "
                f"({100 * n / total:.1f} %)."
                for a, b, n, total in pairs[:3]
            ),
            recall_words(content, k),
        ]
        assert page.locator("#confusion").count() == (n_classes <= 30)
        rows = [row.locator("th, td").all_inner_texts() for row in page.locator("#confused-rows tr").all()]
        texts = [
            [content.classes[a], content.classes[b], f"{n} of {total}", f"{100 * n / total:.1f}\xa0%"]
            for a, b, n, total in pairs
        ]
        assert rows == (texts if n_classes > 30 else [])
        recall = [rate.sensitivity[0] for rate in content.rates[k - 1]]
        widths = page.locator("#rates-rows rect").evaluate_all("(bars) => bars.map((bar) => bar.getAttribute('width'))")
        assert widths == [f"{100 * share:.1f}%" for share in (sorted(recall) if n_classes > 12 else recall)]
