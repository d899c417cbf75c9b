"""Exact integer noise: the draws, and the compiled loops behind them."""
