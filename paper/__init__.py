"""Experiments of "Robust Multi-class Feature Selection via l2,0-Norm Regularization Minimization" by Z. Sun and Y. Yu.

``python -m paper`` makes the paper's tables and figures; README.md has the results beside the printed ones.
"""
