"""Evaluate a model on held-out items and release the score under differential privacy."""

from discreet.evaluation.private.fit_and_score import fit_and_evaluate
from discreet.evaluation.private.release import PrivateScore, choose_privately, evaluate_privately

__all__ = ["PrivateScore", "choose_privately", "evaluate_privately", "fit_and_evaluate"]
