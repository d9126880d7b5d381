"""Comparison of several selectors on the same splits, with every choice made inside the training parts.

:mod:`~l20fs.compare.methods` has what is compared, :func:`~l20fs.compare.runner.run` returns a score per fit, classifier and
number of features, :mod:`~l20fs.compare.outcomes` and :mod:`~l20fs.compare.summary` say what follows from them.
"""
