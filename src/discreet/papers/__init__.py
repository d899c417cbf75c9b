"""The systems of five papers, one folder per paper: algorithms, theory, and the baselines of the paper."""
