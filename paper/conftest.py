"""The gallery example runs for itself, and not when tests are collected."""

collect_ignore = ["algorithms.py", "__main__.py"]
