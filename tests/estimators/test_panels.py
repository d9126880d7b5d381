"""Numbers about a panel that the report shows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from l20fs.estimators.panels import class_means


def test_class_means_are_mean_z_scores_also_far_from_zero():
    y = np.array([0, 0, 0, 1, 1, 1])
    X = np.column_stack([1e13 + 2.0 * y, np.full(6, 0.1), [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]])
    scores = (X[:, 2] - X[:, 2].mean()) / X[:, 2].std()
    units = [np.array([0]), np.array([1]), np.array([2]), np.array([0, 2])]
    for container in (np.asarray, sp.csr_array):
        far, constant, plain, group = class_means(container(X), units, y)
        np.testing.assert_allclose(far, [-1.0, 1.0], rtol=1e-12)
        assert constant == [0.0, 0.0]
        np.testing.assert_allclose(plain, [scores[:3].mean(), scores[3:].mean()], rtol=1e-12)
        np.testing.assert_allclose(group, np.mean([far, plain], axis=0), rtol=1e-12)
