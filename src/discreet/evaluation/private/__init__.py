"""Measure a model on people's own hidden items and release the number with noise: paid, bounded, proved."""

from discreet.evaluation.private.fit_and_score import fit_and_evaluate
from discreet.evaluation.private.release import PrivateScore, choose_privately, evaluate_privately

__all__ = ["PrivateScore", "choose_privately", "evaluate_privately", "fit_and_evaluate"]
