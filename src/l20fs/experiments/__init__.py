"""The paper's experiments as data: plans, the cells that they consist of, and tables, figures and texts from their rows."""
