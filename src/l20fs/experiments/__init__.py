"""The paper's experiments as data: plans, the cells that they consist of, and what is made of the rows."""
