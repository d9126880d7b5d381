"""Pages and tables of results, each one file that loads nothing."""
