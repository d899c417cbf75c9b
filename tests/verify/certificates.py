"""Certificates of every mechanism that the checker knows, made from the package's own mechanisms."""

import hashlib
import json
from dataclasses import replace
from fractions import Fraction

from discreet.follow.settings import RELEASE_BITS, FollowSettings
from discreet.privacy.accounting.accountant import gaussian_multiplier, split_gaussian
from discreet.privacy.accounting.rounding import root_above
from discreet.privacy.certificate import (
    certificate,
    continual_release,
    response_release,
    sampling_release,
    shared_release,
    threshold_release,
)
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.mechanisms.additive import Gaussian, Laplace, additive_release, fixed_point_noise
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace, ModifiedLaplace
from discreet.privacy.mechanisms.randomized_response import RandomizedResponse, SignFlip
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.privacy.mechanisms.subsampling import ImportanceSampling


def guarantee(epsilon=1.0, delta=1e-6):
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )


def gaussian(epsilon=1.0, delta=1e-6, size=40, **more):
    noise = Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=1.5)
    return certificate(guarantee(epsilon, delta), [additive_release("sums", noise, size, **more)])


def several():
    """Return three Gaussian releases that share one budget."""
    multipliers = split_gaussian(gaussian_multiplier(1.0, 1e-6) * (1 + 2.0**-40), [0.2, 0.3, 0.5])
    noises = [Gaussian(sigma=one, l2_sensitivity=1.0) for one in multipliers]
    return certificate(guarantee(), [additive_release(f"part {n}", one, 40) for n, one in enumerate(noises)])


def mixed():
    """Return a pure release, a selection and a Gaussian one, whose costs add up."""
    noise = Gaussian.calibrated(epsilon=0.5, delta=5e-7, l2_sensitivity=1.0)
    scale = Laplace.calibrated(epsilon=0.25, l1_sensitivity=1.0)
    names = NoisyThreshold(epsilon=0.25, delta=5e-7, most=100)
    releases = [
        additive_release("scale", scale, 12),
        threshold_release("catalog", names),
        additive_release("sums", noise, 100, symmetric=True),
    ]
    return certificate(guarantee(), releases)


def pure(*releases, epsilon=1.0, delta=0.0, people=1):
    return certificate(guarantee(epsilon, delta), releases, people=people)


def continual(releases=12):
    settings = FollowSettings(releases=releases, epsilon=1.0, half_life=30.0)
    both = (settings.values.whole, settings.counts(rated=False).whole)
    matrices = [[column[at:] for at, column in enumerate(whole.T.tolist())] for whole in both]
    release = continual_release("year", matrices, entries=2**44, width=settings.width, coordinates=1000)
    return certificate(guarantee(), [release])


def shared(honest=3, parties=4, symmetric=False):
    exact = Fraction(gaussian_multiplier(1.0, 1e-6)) * (1 + Fraction(1, 2**40)) * 2**RELEASE_BITS
    width, narrow = (fixed_point_noise(root_above(exact**2 / honest / part + 4)) for part in (1, 2))
    sensitivity = Fraction(2**RELEASE_BITS)
    release = shared_release(
        "sums",
        sensitivity=sensitivity,
        width=width,
        off_diagonal=narrow if symmetric else None,
        coordinates=50,
        honest=honest,
        parties=parties,
    )
    return certificate(guarantee(), [release])


def group(people=3):
    """Return the guarantee of a whole household, by more noise for the same number."""
    noise = Gaussian.calibrated(epsilon=1.0, delta=1e-6, l2_sensitivity=float(people))
    return certificate(
        guarantee(), [additive_release("sums", replace(noise, l2_sensitivity=1.0), 40)], people=people
    )


CERTIFICATES = {
    "Gaussian": gaussian,
    "Gaussian, symmetric": lambda: gaussian(size=900, symmetric=True),
    "Gaussian, tiny delta": lambda: gaussian(epsilon=0.1, delta=1e-30),
    "Gaussian, large epsilon": lambda: gaussian(epsilon=20.0, delta=1e-9),
    "three Gaussians": several,
    "Laplace": lambda: pure(
        additive_release("counts", Laplace.calibrated(epsilon=0.5, l1_sensitivity=2.0), 30, count=2)
    ),
    "Laplace, symmetric": lambda: pure(
        additive_release("pairs", Laplace.calibrated(epsilon=1.0, l1_sensitivity=2.0), 900, symmetric=True)
    ),
    "randomized response": lambda: pure(response_release("stars", RandomizedResponse(epsilon=1.0, levels=5))),
    "sign flip": lambda: pure(response_release("signs", SignFlip(epsilon=1.0))),
    "bounded Laplace": lambda: pure(response_release("stars", BoundedLaplace(epsilon=1.0, low=1, high=5))),
    "clamped Laplace": lambda: pure(response_release("stars", ClampedLaplace(epsilon=1.0, low=1, high=5))),
    "modified Laplace": lambda: pure(response_release("stars", ModifiedLaplace(epsilon=1.0, low=1, high=5))),
    "threshold": lambda: certificate(
        guarantee(), [threshold_release("catalog", NoisyThreshold(epsilon=1.0, delta=1e-6, most=1000))]
    ),
    "importance sampling": lambda: pure(
        sampling_release("gradients", ImportanceSampling.calibrated(epsilon=1.0, largest_norm=3.0))
    ),
    "mixed": mixed,
    "continual": continual,
    "shared noise": shared,
    "shared noise, symmetric": lambda: shared(symmetric=True),
    "group": group,
    "group, pure": lambda: pure(
        additive_release("counts", Laplace.calibrated(epsilon=0.25, l1_sensitivity=2.0), 30), people=4
    ),
}


def sealed(record):
    """Return a certificate with the digest of its present content: what a forger would write."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return {**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}
