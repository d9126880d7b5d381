"""Prediction from stored numbers with NumPy alone: linear rules, their probabilities, and panels in a file."""
