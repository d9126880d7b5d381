"""The report: what a run found, in a file that a page is made of."""
