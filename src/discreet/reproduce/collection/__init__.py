"""Two collection mechanisms: the experiments. Claims and results are in `papers/collection`."""
