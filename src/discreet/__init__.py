"""Learn recommenders with a proven differential-privacy guarantee.

This module exports the public API: reading data (`read`, `from_frame`, `catalog`), the estimators, `load`,
guarantees and ledgers, `evaluate` and `compare`, and the errors. Names are imported on first use, so the
command line starts fast. Collection on devices is in `discreet.collect`, federated learning in
`discreet.federated`.
"""

from __future__ import annotations

from discreet.core.exports import Exports

# Replaces `typing.TYPE_CHECKING`; importing `typing` would take longer than the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.core.checks import BudgetError as BudgetError
    from discreet.core.checks import DataError as DataError
    from discreet.core.checks import DiscreetError as DiscreetError
    from discreet.core.checks import FileError as FileError
    from discreet.core.checks import ParameterError as ParameterError
    from discreet.core.checks import PrivacyError as PrivacyError
    from discreet.core.randomness import PrivacyRandom as PrivacyRandom
    from discreet.data.datasets import catalog as catalog
    from discreet.data.facts import PublicFacts as PublicFacts
    from discreet.data.interactions import Interactions as Interactions
    from discreet.data.reading.readers import from_frame as from_frame
    from discreet.data.reading.readers import read as read
    from discreet.data.vocabulary import Vocabulary as Vocabulary
    from discreet.evaluation.comparison import compare as compare
    from discreet.evaluation.private import choose_privately as choose_privately
    from discreet.evaluation.private import evaluate_privately as evaluate_privately
    from discreet.evaluation.private import fit_and_evaluate as fit_and_evaluate
    from discreet.evaluation.protocol import evaluate as evaluate
    from discreet.evaluation.report import write_report as write_report
    from discreet.evaluation.results import Evaluation as Evaluation
    from discreet.models.baselines.als import Als as Als
    from discreet.models.baselines.implicit_als import ImplicitAls as ImplicitAls
    from discreet.models.baselines.item_item import Ease as Ease
    from discreet.models.baselines.item_item import ItemKnn as ItemKnn
    from discreet.models.baselines.markov_chain import MarkovChain as MarkovChain
    from discreet.models.biases import Biases as Biases
    from discreet.models.estimator import Estimator as Estimator
    from discreet.models.fitted import FittedModel as FittedModel
    from discreet.models.popularity import Popularity as Popularity
    from discreet.models.private_facts import PrivateCatalog as PrivateCatalog
    from discreet.models.private_facts import PrivateScale as PrivateScale
    from discreet.models.storage import load as load
    from discreet.models.user_factorization.estimator import UserFactorization as UserFactorization
    from discreet.papers.collection.nuclear import LocalNuclear as LocalNuclear
    from discreet.papers.collection.nuclear import LocalNuclearPlain as LocalNuclearPlain
    from discreet.papers.dpimf.estimators import Dpimf as Dpimf
    from discreet.papers.dpimf.estimators import Dpmf as Dpmf
    from discreet.papers.dpimf.neighbors import ItemNeighbors as ItemNeighbors
    from discreet.papers.dpimf.objective import ImplicitObjective as ImplicitObjective
    from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd as CovarianceSvd
    from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe as FrankWolfe
    from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe as PrintedFrankWolfe
    from discreet.papers.frank_wolfe.projected_gradient import ProjectedGradient as ProjectedGradient
    from discreet.papers.mixture.channel import LocalChannel as LocalChannel
    from discreet.papers.mixture.mixture import LocalMixture as LocalMixture
    from discreet.papers.mixture.private_gradients import PrivateGradients as PrivateGradients
    from discreet.papers.mixture.sgd import LocalSgd as LocalSgd
    from discreet.papers.one_bit.estimators import OneBitGradient as OneBitGradient
    from discreet.papers.one_bit.estimators import OneBitInput as OneBitInput
    from discreet.papers.one_bit.estimators import OneBitObjective as OneBitObjective
    from discreet.papers.one_bit.estimators import OneBitOutput as OneBitOutput
    from discreet.papers.one_bit.printed import OneBitObjectivePrinted as OneBitObjectivePrinted
    from discreet.papers.one_bit.printed import OneBitOutputPrinted as OneBitOutputPrinted
    from discreet.planning.schedules import plan as plan
    from discreet.privacy.guarantee import Basis as Basis
    from discreet.privacy.guarantee import Guarantee as Guarantee
    from discreet.privacy.guarantee import Neighbors as Neighbors
    from discreet.privacy.guarantee import Trust as Trust
    from discreet.privacy.guarantee import Unit as Unit
    from discreet.privacy.ledger.book import Ledger as Ledger
    from discreet.synthesis.making import synthesize as synthesize

    __version__: str
else:
    _exports = Exports(
        "discreet",
        {
            # Data
            "discreet.data.reading.readers": "read from_frame",
            "discreet.data.datasets.catalog": "catalog",
            "discreet.data.interactions": "Interactions",
            "discreet.data.facts": "PublicFacts",
            "discreet.data.vocabulary": "Vocabulary",
            # Central model: a trusted data owner
            "discreet.models.user_factorization.estimator": "UserFactorization",
            "discreet.models.biases": "Biases",
            "discreet.models.popularity": "Popularity",
            "discreet.papers.dpimf.objective": "ImplicitObjective",
            "discreet.papers.frank_wolfe.frank_wolfe": "FrankWolfe",
            "discreet.papers.frank_wolfe.printed_frank_wolfe": "PrintedFrankWolfe",
            "discreet.papers.frank_wolfe.covariance_svd": "CovarianceSvd",
            "discreet.papers.frank_wolfe.projected_gradient": "ProjectedGradient",
            # Facts selected privately
            "discreet.models.private_facts": "PrivateCatalog PrivateScale",
            # Binary ratings
            "discreet.papers.one_bit.estimators": "OneBitInput OneBitObjective OneBitGradient OneBitOutput",
            "discreet.papers.one_bit.printed": "OneBitObjectivePrinted OneBitOutputPrinted",
            # Local model: noise before ratings leave the device
            "discreet.papers.mixture.channel": "LocalChannel",
            "discreet.papers.mixture.mixture": "LocalMixture",
            "discreet.papers.collection.nuclear": "LocalNuclear LocalNuclearPlain",
            "discreet.papers.mixture.sgd": "LocalSgd",
            "discreet.papers.mixture.private_gradients": "PrivateGradients",
            "discreet.papers.dpimf.estimators": "Dpimf Dpmf",
            "discreet.papers.dpimf.neighbors": "ItemNeighbors",
            # Baselines without privacy
            "discreet.models.baselines.als": "Als",
            "discreet.models.baselines.implicit_als": "ImplicitAls",
            "discreet.models.baselines.item_item": "Ease ItemKnn",
            "discreet.models.baselines.markov_chain": "MarkovChain",
            # Base classes and loading
            "discreet.models.estimator": "Estimator",
            "discreet.models.fitted": "FittedModel",
            "discreet.models.storage": "load",
            # Guarantees, ledgers and noise
            "discreet.privacy.guarantee": "Guarantee Unit Neighbors Trust Basis",
            "discreet.privacy.ledger.book": "Ledger",
            "discreet.core.randomness": "PrivacyRandom",
            # Evaluation
            "discreet.evaluation.protocol": "evaluate",
            "discreet.evaluation.comparison": "compare",
            "discreet.evaluation.private": "evaluate_privately choose_privately fit_and_evaluate",
            "discreet.evaluation.results": "Evaluation",
            "discreet.evaluation.report": "write_report",
            # Planning
            "discreet.planning.schedules": "plan",
            # Synthetic data
            "discreet.synthesis.making": "synthesize",
            "discreet.core.checks": (
                "DiscreetError ParameterError DataError FileError PrivacyError BudgetError"
            ),
        },
    )
    __all__ = [*_exports.names, "__version__"]

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("discreet")
        return _exports.find(name)

    def __dir__() -> list[str]:
        return __all__
