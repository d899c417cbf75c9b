"""Names of the library that commands use, each imported on first use: a command loads only what it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.core.exports import later

# Type checkers and `later` read this one list: all that five packages export, and names of other modules.
if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from discreet import __version__, demo, model_settings
    from discreet.audit.canaries.one_run import audit_one_run
    from discreet.audit.findings import Finding, KeptFindings, any_refuted
    from discreet.audit.fingerprint import fingerprint
    from discreet.audit.from_files import audit_files, has_files
    from discreet.audit.full import REPORT, VIEWS, play_view, quick_audit, sample_games, views_of
    from discreet.audit.last_audits import last_audit
    from discreet.audit.page import write_page as write_audit_page
    from discreet.audit.presets import presets
    from discreet.audit.questions import audit_questions, has_questions, price_a_party
    from discreet.collect.blind_signatures import BlindPublicKey, BlindSigningKey
    from discreet.collect.campaign import Campaign
    from discreet.collect.collector import CatalogCollector, Collector
    from discreet.collect.device import CatalogDevice, Device
    from discreet.collect.draw_tables import reported_loss
    from discreet.collect.errors import NoTables, NotACampaignError
    from discreet.collect.gradient_rounds import GradientCampaign, GradientDevice
    from discreet.collect.hidden_items import CatalogCampaign, cell_mechanism
    from discreet.collect.invitations import code_name, key_of, new_code
    from discreet.collect.opening import KIND as CAMPAIGN_KIND
    from discreet.collect.opening import AnyCampaign, is_campaign, open_campaign
    from discreet.data import *
    from discreet.data import fits as fits_schema
    from discreet.data import read as read_ratings
    from discreet.data.datasets import catalog
    from discreet.demo import METRICS as DEMO_METRICS
    from discreet.demo import Tour
    from discreet.dossier.documents import FACTS as FACTS_FILE
    from discreet.dossier.documents import refuse_folder, write_dossier
    from discreet.dossier.erasure import FORMAT as ERASURE_FORMAT
    from discreet.dossier.erasure import erasure
    from discreet.dossier.evidence import Evidence, LedgerRecord, audit_sentence, audited_as, for_people
    from discreet.dossier.facts import MEANINGS, HumanFacts
    from discreet.dossier.registry import ENTRY, is_entry, registry_entry
    from discreet.dossier.signals import Signals
    from discreet.evaluation.comparison import Comparison, compare
    from discreet.evaluation.metrics import ListMetric, Metric, RatingMetric, parse_metrics
    from discreet.evaluation.private import (
        PrivateScore,
        Together,
        best_of,
        expected_noise,
        fit_and_evaluate,
        spending_together,
    )
    from discreet.evaluation.protocol import evaluate
    from discreet.evaluation.report import KIND as REPORT_KIND
    from discreet.evaluation.report import (
        best_baseline,
        cost_of_privacy,
        ran_once,
        reference_rows,
        report_rows,
        write_report,
    )
    from discreet.evaluation.results import GROUP_HEADER, Evaluation, Score, group_rows
    from discreet.evaluation.scoring import PREFIX as BASELINE_PREFIX
    from discreet.evaluation.scoring import baselines, measure, usual_split
    from discreet.evaluation.trial import KIND as TRIAL_KIND
    from discreet.evaluation.trial import Trial, render, trial
    from discreet.evaluation.trial import summary as trial_summary
    from discreet.export.bundle.folder import write_bundle
    from discreet.export.bundle.parts import parts_of
    from discreet.export.card import CARD, is_card, model_card
    from discreet.export.items import LIVE, export_items, load_items
    from discreet.federated.asking import Round
    from discreet.federated.catalogs import read_salt, salted_data
    from discreet.federated.catalogs import united as united_catalog
    from discreet.federated.coordinator import RunOutcome
    from discreet.federated.flower.transport import coordinated as coordinated_fit
    from discreet.federated.flower.transport import flower_parties
    from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement, found_federation
    from discreet.federated.journal import Journal
    from discreet.federated.keeper import MOST_BYTES as KEEPER_BYTES
    from discreet.federated.keeper import Keeper
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import Way as ProtocolWay
    from discreet.federated.protocols.choosing import item_protocol, simulated_protocol, way_of
    from discreet.federated.protocols.protocol import Protocol as FederatedProtocol
    from discreet.federated.serving.party import Joining, PartyDaemon, joining
    from discreet.federated.serving.tls import TlsServer, keeper_service
    from discreet.federated.simulation import PartyScores, compare_parties
    from discreet.federated.simulation import simulate as simulate_run
    from discreet.federated.transport import Answered, Transport
    from discreet.follow import FollowAgreement, Following, FollowSettings, Status
    from discreet.follow.batches import Source as FollowedSource
    from discreet.follow.batches import remark_on_weights
    from discreet.follow.comparison import SAME_LISTS, SAME_RATINGS, Way, compared, verdict
    from discreet.follow.coordinator import FollowedTogether
    from discreet.follow.entries import influence_left
    from discreet.follow.federation import STATE as FOLLOWED_STATE
    from discreet.follow.federation import coordinated as coordinated_year
    from discreet.follow.federation import declare_items, following, releases_together, to_recipe, year_of
    from discreet.follow.federation import from_recipe as year_recipe
    from discreet.follow.model import Kind as FollowedKind
    from discreet.follow.model import followed_alone
    from discreet.follow.replay import Replay, replay_year
    from discreet.follow.settings import ONCE, Pace
    from discreet.follow.stream import Added
    from discreet.follow.supplies import files_at, supply_from
    from discreet.model_settings import (
        describe_models,
        estimators,
        example_promise,
        is_never_private,
        parse_fields,
        parse_settings,
    )
    from discreet.models import *
    from discreet.models import FIRST as FIRST_PLACES
    from discreet.models import signatures
    from discreet.models.storage import packed
    from discreet.papers import PAPERS, titled
    from discreet.papers.bounds import Bound, PublicSizes, theories
    from discreet.papers.mixture.private_gradients import GradientServer
    from discreet.planning.curves import (
        MARGIN,
        SIMPLEST,
        ExpectedAccuracy,
        expected,
        similar_curves,
    )
    from discreet.planning.curves import METRICS as PLAN_METRICS
    from discreet.planning.how_many_users import users_needed
    from discreet.planning.schedules import plan, schedule
    from discreet.privacy import *
    from discreet.privacy.ledger.ledger import Account, Frame, report_json
    from discreet.privacy.ledger.records import Amount, Entry
    from discreet.privacy.ledger.sqlite_file import APPLICATION as LEDGER_APPLICATION
    from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
    from discreet.privacy.mechanisms.local import rating_mechanism
    from discreet.report import *
    from discreet.report import MORE as OFFICER_TITLE
    from discreet.report import PAGE as LABEL_PAGE
    from discreet.report import page as whole_page
    from discreet.report import table as page_table
    from discreet.reproduce import Verdict, claims_of, paper_called, paper_page, papers_pages, reproduce
    from discreet.reproduce import names as paper_names
    from discreet.reproduce.page import count as count_verdicts
    from discreet.reproduce.page import row_verdict
    from discreet.reproduce.papers import committed, papers_folder
    from discreet.service.collect_app import check_signer, collecting_app
    from discreet.service.pages import integrity_of, web_files
    from discreet.service.recommend_app import answering_app
    from discreet.service.refitting import Refits, fit_reports, fit_store, usual_model
    from discreet.service.running import need_service
    from discreet.service.running import run as run_service
    from discreet.service.several import run_several
    from discreet.service.stores import (
        MOST_INVITATIONS,
        Counts,
        ReportStore,
        SqliteStore,
        copy_store,
        open_store,
    )
    from discreet.sources import *
    from discreet.sources import duckdb_export, spark
    from discreet.sources import session as spark_session
    from discreet.sources import write_lists as write_shard_lists
    from discreet.statistics import DataSource
    from discreet.synthesis.labels import (
        DRAWN_FROM,
        UNSIGNED,
        is_synthetic,
        read_synthetic_label,
        refuse_target,
        write_synthetic,
    )
    from discreet.synthesis.labels import summary as synthesis_summary
    from discreet.synthesis.making import make as make_users
    from discreet.synthesis.page import read_real
    from discreet.synthesis.page import refuse_page as refuse_synthesis_page
    from discreet.synthesis.page import write_page as write_synthesis_page

__getattr__ = later(__name__)
