"""Damaged files of every format that is read, tried in forks of a warm interpreter: ``python -m fuzz --help``.

``corpus`` makes whole files, ``mutations`` damages them, ``case`` reads one and says what is wrong with the outcome,
``forks`` runs many, so that crashes, hangs and peaks of memory are found too; ``guided`` lets atheris choose the damages.
"""
