"""Sum what a sample of people tell: those who tell little are drawn rarely and weigh more."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.grid import ROUNDING, VECTOR_BITS, VECTOR_STEPS
from discreet.contributions.profile_sums import Profiles, Question, norms_of_all, weighted_terms
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.privacy.sampling.draws import add_discrete_laplace
from discreet.randomness import PrivacyRandom

# A person with this many average items tells as much as anybody may; those with fewer tell less.
_ITEMS_OF_A_FULL_VOICE = 64
_MAX_WEIGHT = 8.0


def sampled_linear_terms(
    data: Interactions, profiles: Profiles, question: Question, noise: Laplace, random: PrivacyRandom
) -> Floats:
    """Return noisy sums of what a random sample of people tell, unbiased for what all of them tell.

    A person's words have l1 norm s <= 1 and are drawn with probability 1 / w and counted w times, with the
    largest w that keeps log(1 + (e^(w s / scale) - 1) / w) at most what a norm of 1 costs without sampling.
    """
    mechanism = ImportanceSampling(
        epsilon=noise.l1_sensitivity / noise.scale, scale=noise.scale, max_weight=_MAX_WEIGHT
    )
    norms = norms_of_all(data, profiles, question)
    bound = float(np.mean(question.pull)) * (question.count_part + profiles.factors) * _ITEMS_OF_A_FULL_VOICE
    voices = np.minimum(norms / bound, mechanism.largest_norm() * ROUNDING)
    drawn, heavier = mechanism.sample(voices, random)
    per_norm = np.divide(voices, norms, out=np.zeros_like(norms), where=norms > 0)
    weights = np.where(drawn, heavier * per_norm * ROUNDING, 0.0)
    steps = weighted_terms(data, profiles, question, weights)
    add_discrete_laplace(steps, noise.scale * VECTOR_STEPS, random)
    noisy: Floats = np.ldexp(steps.astype(np.float64), -VECTOR_BITS)
    return noisy
