"""Joint-DP Frank-Wolfe: the experiments. Claims and results are in `papers/frank_wolfe`."""
