"""Tables of samples in files."""
