"""Models with a fault each that people really make; an audit that lets one pass is blind."""

import dataclasses
import inspect
from fractions import Fraction

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.model_settings import MODELS
from discreet.privacy import session as session_module
from discreet.privacy.mechanisms import additive
from discreet.privacy.sampling import draws
from discreet.privacy.sampling.draws import recorded
from discreet.privacy.session import Session
from small_sources import observed

# A fault that has no meaning for a model with one release is tried on another.
USUAL = ("biases", "popularity", "user-factorization", "covariance-svd")
ROUNDS = ("biases", "frank-wolfe", "user-factorization", "covariance-svd")


def _narrower(share):
    def twin(patch, kind):
        wide = additive.fixed_point_noise
        patch.setattr(additive, "fixed_point_noise", lambda noise: wide(noise * share))
        # Cached scales of sound noise would hide the fault, and its own would stay in the cache.
        patch.setattr(additive, "_gaussian_scales", inspect.unwrap(additive._gaussian_scales))

    return twin


def no_clipping(patch, kind):
    """Bound every rating on its own, as if each came from another person."""
    bound = kind._bound

    def every_rating(self, data):
        data = bound(self, data)
        return Interactions(
            indptr=np.arange(data.n_ratings + 1),
            items=data.items,
            values=data.values,
            users=Vocabulary.of(np.arange(data.n_ratings)),
            catalog=data.catalog,
            facts=data.facts,
        )

    patch.setattr(kind, "_bound", every_rating)


def cap_from_data(patch, kind):
    """Keep as many ratings of each user as the shortest row holds."""
    bound = kind._bound

    def shortest(self, data):
        return bound(self, data.bounded(max_per_user=max(int(np.diff(data.indptr).min()), 1)))

    patch.setattr(kind, "_bound", shortest)


def delta_ignored(patch, kind):
    """Promise a pure epsilon for Gaussian noise."""
    promise, opened = kind.promise, Session.open
    patch.setattr(kind, "promise", lambda self, facts: dataclasses.replace(promise(self, facts), delta=0.0))
    patch.setattr(
        Session,
        "open",
        lambda data, told, random: opened(data, dataclasses.replace(told, delta=1e-6), random),
    )
    patch.setattr(Session, "part", lambda self, **_: self)
    _disarm(patch)


def composition_forgotten(patch, kind):
    """Give every release the noise that one alone would need."""
    patch.setattr(session_module, "gaussian_sigma", lambda multiplier, bound, share: multiplier * bound)
    _disarm(patch)


def _disarm(patch):
    """Let a model leave though its log costs too much: an audit must find that without the log."""
    patch.setattr(Session, "check", lambda self, guarantee: None)


def _published(change):
    def twin(patch, kind):
        train = kind._train

        def leaking(self, session, progress):
            scorer, data = train(self, session, progress), session._source
            name = next(key for key, array in scorer.arrays().items() if array.dtype.kind == "f")
            return dataclasses.replace(scorer, **{name: getattr(scorer, name) + change(data)})

        patch.setattr(kind, "_train", leaking)

    return twin


def _exact_mean(data):
    return float(data.values.sum()) / 1000


def _exact_decision(data):
    return 1.0 if data.n_ratings % 2 else 0.0


def noise_reused_across_fits(patch, kind):
    """Draw the same noise in every fit."""
    train = kind._train

    def seeded(self, session, progress):
        session._random = PrivacyRandom.recorded(4, session._random.recording)
        return train(self, session, progress)

    patch.setattr(kind, "_train", seeded)


def noise_reused_within_fits(patch, kind):
    """Draw one vector of noise a fit, and use it in all widths."""

    def add(target, sigma, random):
        again = PrivacyRandom.simulate(int.from_bytes(random._stream.key[:4], "little"))
        unit = draws.discrete_gaussian(2.0**20, target.size, again) / 2.0**20
        target += np.rint(unit * sigma).astype(np.int64).reshape(target.shape)

    add.__name__ = "add_discrete_gaussian"
    patch.setattr(additive, "add_discrete_gaussian", recorded(add))


def float_noise(patch, kind):
    """Add floats of numpy's generator, off any grid and past the hook."""

    def release(self, vector, random):
        values = observed(vector, "release")
        return values + self.sigma * np.random.standard_normal(values.shape)

    patch.setattr(additive.Additive, "release", release)
    patch.setattr(additive.Additive, "release_symmetric", release)


TWINS = {
    "half noise": (_narrower(Fraction(1, 2)), USUAL),
    ".9 noise": (_narrower(Fraction(9, 10)), ("biases", "popularity", "user-factorization", "frank-wolfe")),
    "no clipping": (no_clipping, USUAL),
    "cap read from data": (cap_from_data, USUAL),
    "delta ignored": (delta_ignored, USUAL),
    "composition forgotten": (composition_forgotten, ROUNDS),
    "mean without noise": (_published(_exact_mean), USUAL),
    "decision on exact data": (_published(_exact_decision), USUAL),
    "noise reused across fits": (noise_reused_across_fits, USUAL),
    "noise reused within fits": (noise_reused_within_fits, ROUNDS),
    "float noise": (float_noise, USUAL),
}


def cases():
    return [(name, model) for name, (_, models) in TWINS.items() for model in models]


def spoil(patch, name, model):
    """Put the fault into the model and return the estimator."""
    kind = MODELS[model]
    TWINS[name][0](patch, kind)
    return kind(epsilon=1.0)
