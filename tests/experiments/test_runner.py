"""Plans, splits, classifiers and the runner: against the definitions, and stopped."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import paper_accuracy
from samples import make_data
from sklearn.linear_model import LogisticRegression

from l20fs import L20Selector, paper_settings
from l20fs.data import load_srbct
from l20fs.evaluation.engine import Samples
from l20fs.evaluation.folds import Fold
from l20fs.experiments import runner
from l20fs.experiments.cells import Dataset, cells_of, compute
from l20fs.experiments.plan import NONZERO, PlanError, load_plan, parse_plan
from l20fs.experiments.protocol import Softmax, inner_splits, judge_by, majority_share, paper_split
from l20fs.experiments.runner import COLUMNS, run
from l20fs.experiments.traces import ALPHA, trace_homotopy
from l20fs.methods import FisherScore

SMALL = """
datasets = ["toy"]
sizes = [2, 5]
n_splits = 3
inner_folds = 2

[[methods]]
method = "FisherScore"

[[methods]]
label = "paper"
paper_solver = "ahiht"
grid = { alpha = [1e-3, 1e-1] }
"""


def toy(seed=0):
    X, y = make_data(seed)
    return Dataset("toy", X, y)


# ---------------------------------------------------------------------------------------------------------------- protocol


@given(sizes=st.lists(st.integers(1, 12), min_size=2, max_size=5), number=st.integers(0, 100))
@settings(max_examples=40)
def test_two_thirds_of_every_class_rounded_up(sizes, number):
    y = np.random.default_rng(number).permutation(np.repeat(np.arange(len(sizes)), sizes))
    split = paper_split(y, number)
    assert sorted([*split.train, *split.test]) == list(range(len(y)))
    for label, size in enumerate(sizes):
        assert np.count_nonzero(y[split.train] == label) == -(-2 * size // 3)
    again = paper_split(y, number)
    assert np.array_equal(split.train, again.train)


def test_trials_differ_and_depend_on_the_seed():
    y = np.arange(60) % 3
    trains = {tuple(paper_split(y, number, seed).train) for number in range(5) for seed in range(2)}
    assert len(trains) == 10


def test_the_test_sizes_are_those_behind_the_printed_accuracies(paper_set):
    """Each printed accuracy is a whole count over ten times these sizes (methods of the paper, section 0.2)."""
    wanted = {"brain": 12, "breast3": 31, "leukemia": 12, "lung": 66, "lymphoma": 20, "nci": 18, "prostate": 33, "srbct": 19}
    assert {name: len(paper_split(paper_set(name)[1], 0).test) for name in wanted} == wanted


def test_inner_folds_stay_inside_and_keep_classes_of_one_sample_in_training():
    y = np.array([0] * 6 + [1] * 5 + [2])
    folds = inner_splits(y, 5, 0)
    assert len(folds) == 5
    assert all(11 in fold.train for fold in folds)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(11))
    assert len(inner_splits(np.array([0, 0, 0, 1, 1]), 5, 0)) == 2, "no more folds than the smallest class has samples"


def softmax_loss(X, y, coef):
    scores = X @ coef.T
    own = scores[np.arange(len(y)), y]
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - own) + 0.5e-4 * np.square(coef).sum()


@pytest.mark.parametrize("n_features", [3, 200])
def test_softmax_is_logistic_regression_without_an_intercept(n_features):
    X, y = make_data(1, n_features=200)
    X = X[:, :n_features]
    ours = Softmax().fit(X, y)
    reference = LogisticRegression(fit_intercept=False, C=1 / (60 * 1e-4), max_iter=5000, tol=1e-8).fit(X, y)
    assert softmax_loss(X, y, ours.coef_) <= softmax_loss(X, y, reference.coef_) * (1.0 + 1e-3)
    assert np.array_equal(ours.predict(X), reference.predict(X))


def test_equal_votes_go_to_the_first_class():
    X = np.array([[0.0], [1.0], [-1.0], [2.0], [-2.0], [0.1]])
    y = np.array([2, 1, 1, 2, 0, 0])

    def judged(y, columns):
        samples = Samples(X, y)
        return judge_by("knn", 5).score_on(np.array(columns, dtype=int), samples.part(np.arange(5)), samples.part([5]))

    assert judged(y, [0]) == 0.0  # two votes each for 1 and 2; the sample is of class 0
    assert judged(np.where(y == 0, 1, y), [0]) == 1.0
    assert judged(y, []) == 0.0  # the first of the most frequent classes is 1
    assert judged(np.where(y == 0, 1, y), []) == 1.0


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_without_features_the_most_frequent_class_is_predicted(seed):
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 20)]
    fold = Fold(np.arange(12), np.arange(12, 20))
    samples = Samples(rng.standard_normal((20, 3)), y)
    for name in ("knn", "softmax"):
        found = judge_by(name, 12).score_on(np.empty(0, dtype=int), samples.part(fold.train), samples.part(fold.test))
        assert found == majority_share(y, fold)
        assert found == paper_accuracy(name, samples.X, y, fold, [])


# -------------------------------------------------------------------------------------------------------------------- plan


@pytest.mark.parametrize("name", ["accuracy", "lambda", "initialisation", "solvers", "readings", "time"])
def test_the_plans_of_the_package_are_sound(name):
    plan = load_plan(name)
    assert plan.variants
    assert plan.title
    assert {"accuracy": 24, "lambda": 5, "initialisation": 21, "solvers": 18, "readings": 12, "time": 7}[name] == len(
        plan.variants
    )


def test_the_accuracy_plan_is_the_papers():
    plan = load_plan("accuracy")
    assert plan.sizes == tuple(range(20, 401, 20))
    assert plan.n_splits == 10
    grids = {label: [v.choice for v in plan.variants if v.label == label] for label in plan.labels}
    assert [choice["alpha"] for choice in grids["l2,0-FS"]] == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert [choice["gamma"] for choice in grids["RFS"]] == [1e-5, 1e-3, 1e-1, 1e1, 1e3, 1e5]
    own = next(v for v in plan.variants if v.label == "l2,0-FS").selector()
    assert own.get_params() == L20Selector(**paper_settings("ahiht") | {"alpha": 1e-5}).get_params()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("FisherScore", "FisherScores"),
            r"line 8: the method 'FisherScores' is unknown. The closest name is 'FisherScore'",
        ),
        (("[2, 5]", "[2, 0]"), r"line 3: sizes=\[2, 0\]. Give whole numbers from 1"),
        (("[2, 5]", '"nonzero"'), "line 7: FisherScore has no alpha at which rows are non-zero"),
        (("n_splits = 3", "n_splits = 0"), r"line 4: n_splits=0. Give a whole number of at least 1"),
        (("[1e-3, 1e-1]", "[1e-3, -1.0]"), r"line 13: paper: alpha=-1.0 is not valid"),
        (("[1e-3, 1e-1]", "[1e-3, 1e-3]"), r"line 13: the grid of 'alpha' is .* Give a list of different values"),
        (("[1e-3, 1e-1]", "0.1"), "line 13: the grid of 'alpha' is 0.1"),
        (("alpha =", "lambda ="), "line 13: L20Selector has no parameter 'lambda' here"),
        (('"ahiht"', '"fast"'), r"line 12: paper_solver='fast'. Use 'ahiht' or 'hiht'"),
        (
            ('"ahiht"', '"ahiht"\npaper_reading = "paper"'),
            r"line 13: paper_reading='paper'. Use 'code' or 'printed' beside a paper_solver",
        ),
        (
            ('paper_solver = "ahiht"', 'paper_reading = "printed"'),
            r"line 12: paper_reading='printed'. Use 'code' or 'printed'",
        ),
        (("inner_folds", "folds"), "line 5: the key 'folds' is unknown here. The closest name is 'inner_folds'"),
        (('label = "paper"', 'label = "FisherScore"'), r"line 11: the label 'FisherScore' is used twice"),
        (('["toy"]', "[]"), "line 2: datasets is missing or empty"),
        (("n_splits = 3", 'classifiers = ["svm"]'), r"line 4: the classifier 'svm' is unknown. Use knn or softmax"),
        (("sizes = [2, 5]", "sizes = [2, 5"), "The plan is not valid TOML"),
    ],
    ids=lambda change: change[1] if isinstance(change, tuple) else None,
)
def test_a_plan_that_cannot_be_carried_out_names_the_line(change, message):
    assert change[0] in SMALL
    with pytest.raises(PlanError, match=message):
        parse_plan(SMALL.replace(*change))


def test_sizes_that_a_set_does_not_have_are_refused_before_anything_runs(tmp_path):
    plan = parse_plan(SMALL.replace("[2, 5]", "[2, 50]"))
    with pytest.raises(PlanError, match="line 3: sizes go up to 50, but toy has 12 features"):
        run(plan, [toy()], tmp_path)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------------------ runner


def test_rows_are_what_a_slow_loop_finds(tmp_path):
    plan, data = parse_plan(SMALL), toy()
    rows = run(plan, [data], tmp_path)
    assert tuple(rows.columns) == COLUMNS
    trials = rows[rows.fold.isna() & (rows.classifier == "knn")].set_index(["method", "choice", "split", "n_features"])
    for number, k in itertools.product(range(3), (2, 5)):
        split = paper_split(data.y, number)
        chosen = FisherScore(k).fit(data.X[split.train], data.y[split.train]).get_support(indices=True)
        expected = paper_accuracy("knn", data.X, data.y, split, chosen)
        assert trials.loc["FisherScore", "{}", number, k].accuracy == expected
    assert len(rows[rows.fold.isna()]) == 3 * 3 * 2 * 2
    assert len(rows[rows.fold.notna()]) == 2 * len(rows[rows.fold.isna()])
    assert rows.accuracy.between(0.0, 1.0).all()
    inner = rows[rows.fold.notna()].groupby(["split", "fold"]).n_test.first()
    assert (inner.groupby("split").sum() == len(paper_split(data.y, 0).train)).all(), (
        "inner folds are inside the training part"
    )


def test_selection_sees_training_samples_only(monkeypatch):
    plan, data = parse_plan(SMALL), toy()
    seen = []
    fit = FisherScore.fit
    monkeypatch.setattr(FisherScore, "fit", lambda self, X, y=None: seen.append(X) or fit(self, X, y))
    for cell in cells_of(plan, data):
        if cell.variant.method == "FisherScore":
            compute(cell, data)
            trial = paper_split(data.y, cell.split)
            given_rows = {tuple(row) for row in seen[-1]}
            assert given_rows <= {tuple(row) for row in data.X[trial.train]}
            assert len(given_rows) == len(trial.train) if cell.fold is None else len(given_rows) < len(trial.train)


def without_times(rows):
    return rows.drop(columns="fit_seconds").to_csv()


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    plan, data = parse_plan(SMALL), toy()
    whole, computed = without_times(run(plan, [data])), []

    def counted(cell, dataset):
        if len(computed) == 11:
            raise KeyboardInterrupt
        computed.append(cell)
        return compute(cell, dataset)

    monkeypatch.setattr(runner, "compute", counted)
    with pytest.raises(KeyboardInterrupt):
        run(plan, [data], tmp_path)
    computed.clear()
    monkeypatch.setattr(runner, "compute", lambda cell, dataset: computed.append(cell) or compute(cell, dataset))
    again = run(plan, [data], tmp_path)
    assert (len(computed), without_times(again)) == (27 - 11, whole)
    assert run(plan, [data], tmp_path).equals(again), "even the times are those of the first run"
    for changed, other, n_new in ((plan, toy(seed=1), 27), (parse_plan(SMALL.replace("1e-1]", "1e-2]")), data, 9)):
        computed.clear()
        run(changed, [other], tmp_path)
        assert len(computed) == n_new, "nothing stale is used"


def test_parallel_is_serial(tmp_path):
    plan, data = parse_plan(SMALL), toy()
    one, two = (run(plan, [data], tmp_path, n_jobs=n) for n in (2, 1))
    assert one.equals(two), "what the workers kept is there"
    assert without_times(run(plan, [data])) == without_times(one)


def test_as_many_features_as_are_non_zero():
    text = SMALL.replace("[2, 5]", '"nonzero"').replace('[[methods]]\nmethod = "FisherScore"\n', "")
    plan, data = parse_plan(text), toy()
    assert plan.sizes == (NONZERO,)
    for cell in cells_of(plan, data):
        if cell.fold is None:
            result = compute(cell, data)
            train = paper_split(data.y, cell.split).train
            selector = cell.variant.selector().set_params(n_features_to_select=None)
            path = selector.fit(data.X[train], data.y[train]).path_
            assert result["sizes"] == [result["n_nonzero"]] == [path.n_nonzero[-1]]


def test_the_traced_objective_ends_where_the_path_does_and_falls_at_one_lambda():
    tumours = load_srbct(scale="paper")
    codes = np.unique(tumours.target, return_inverse=True)[1]
    one_hot = np.eye(4)[codes]
    values = trace_homotopy(tumours.data, one_hot, max_steps=1)
    path = L20Selector(None, **paper_settings("ahiht")).fit(tumours.data, tumours.target).path_
    assert len(values) == 1 + path.n_iters.sum()
    assert values[-1] == pytest.approx(path.losses[-1] + ALPHA * path.n_nonzero[-1])
    fixed = trace_homotopy(tumours.data, one_hot, max_steps=50, one_lambda=True)
    assert (np.diff(fixed) < 0.0).all()


def test_the_command_works_without_any_file(tmp_path):
    """SRBCT is built in: the datasets table and a tiny run need nothing."""
    from l20fs.cli import run as run_cli
    from l20fs.cli.reproduce import NAMES
    from l20fs.experiments.exhibits import RECIPES

    assert list(RECIPES) == list(NAMES), "the command knows every exhibit without loading any"
    assert run_cli(["reproduce", "datasets", "-o", str(tmp_path)]) == 0
    assert "Lung" in (tmp_path / "datasets.md").read_text()
    assert run_cli(["reproduce", "accuracy", "-o", str(tmp_path), "--datasets", "iris"]) == 2


def test_missing_sets_are_named_and_the_rest_is_made(tmp_path, monkeypatch):
    from l20fs.experiments import reproduce as module

    text = SMALL.replace('"toy"', '"brain", "srbct"').replace("inner_folds = 2\n", "").replace('"paper"', '"l2,0-FS"')
    monkeypatch.setattr(module, "load_plan", lambda name: parse_plan(text))
    said = []
    run_into = module.Reproduction(tmp_path / "out", data_dir=tmp_path / "nothing", note=said.append)
    made = run_into.make(["accuracy", "curves", "summary"])
    assert any("without brain" in line and "l20fs data import" in line for line in said)
    names = {name for exhibit in made for name in exhibit.files}
    assert {"accuracy-optimistic-knn.md", "accuracy-beside-paper.md", "curves-optimistic-softmax.svg", "summary.md"} <= names
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    assert set(rows.dataset) == {"srbct"}
    assert "optimistic" in (tmp_path / "out" / "accuracy-optimistic-knn.md").read_text()
    again = module.Reproduction(tmp_path / "out", data_dir=tmp_path / "nothing", note=said.append)
    before = {name: (tmp_path / "out" / name).read_bytes() for name in names}
    assert again.make(["accuracy", "curves", "summary"]) == made
    assert {name: (tmp_path / "out" / name).read_bytes() for name in names} == before
