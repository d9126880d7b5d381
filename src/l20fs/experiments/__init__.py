"""Experiments of the paper: plans, cells, tables, figures and summaries."""
