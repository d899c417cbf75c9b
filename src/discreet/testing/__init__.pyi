from discreet.testing.estimator_contract import EstimatorContract as EstimatorContract
from discreet.testing.mechanism_contract import MechanismContract as MechanismContract
from discreet.testing.metric_contract import MetricContract as MetricContract
from discreet.testing.refusals import refuses as refuses
from discreet.testing.scorer_contract import ScorerContract as ScorerContract
from discreet.testing.small_data import toy_interactions as toy_interactions
from discreet.testing.statistic_contract import StatisticContract as StatisticContract
