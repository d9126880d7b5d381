"""The protocol that ``defaults.py``, ``models.py`` and ``published.py`` share: data, splits, cells, figures, tables."""
