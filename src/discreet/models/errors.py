"""Errors of models: settings, histories and items they don't know, and files that can't be read."""

from __future__ import annotations

from collections.abc import Collection

from discreet.core.errors import (
    DataError,
    DiscreetError,
    FileError,
    ParameterError,
    PrivacyError,
    most_similar,
)


class UnknownSetting(ParameterError):
    model: str
    setting: str
    settings: Collection[str]
    text = "`{model}` has no setting {setting!r}.{close:?} Its settings are {settings:all}. Pass one of them."

    def template(self) -> str:
        """Return the template; that rows have no ratings has a name of its own."""
        named = "`{model}` has no setting {setting!r}. Pass {arg:feedback=implicit} instead."
        return named if self.setting == "implicit" and "feedback" in self.settings else self.text

    @property
    def close(self) -> str | None:
        """The most similar setting."""
        return most_similar(self.setting, self.settings)


class SettingsMissing(ParameterError):
    model: str
    settings: Collection[str]
    text = "{settings:all} must be set, because {model} has no default for it. Pass {settings:all}."


class BadSettingText(ParameterError):
    pair: str
    text = """{pair!r} isn't a setting, because it has no equals sign between a name and a value. Write it as
    key=value."""


class SetForAll(ParameterError):
    model: str
    setting: str
    text = """{model} sets {setting}, but all models must have the same {setting}. Pass {arg:{setting}} for
    all of them."""


class NoPurpose(ParameterError):
    purpose: str
    text = "{arg:purpose={purpose}} applies to user-factorization only. Remove it, or add that model."


class BadRecipe(ParameterError):
    reason: str
    text = """The recipe can't be read: {reason}. It must have model = "NAME" and a table [settings], nothing
    else."""


class KeywordsOnly(ParameterError):
    function: str
    text = "{function}() takes keyword arguments only. Write {function}(epsilon=1.0)."


class NoPrivateVersion(ParameterError):
    model: str
    text = """{model} has no private version, so it can't keep an epsilon. Pass {arg:epsilon=math.inf}, or
    choose a private model."""


class DeltaTooSmall(ParameterError):
    value: float
    least: float
    text = """{arg:delta} is {value}. At this epsilon it must be 0 or at least {least:.1e}, because the
    noise isn't exact enough for a smaller delta. Pass 0 or a larger delta."""


class DeltaNeeded(ParameterError):
    text = """{arg:delta} is 0, but this model adds Gaussian noise, which needs a delta above 0. Pass
    {arg:delta=1e-6}."""


class SettingsConflict(ParameterError):
    setting: str
    other: str
    text = """{arg:{setting}} can't be used with {other}, because they contradict each other. Remove one of
    them."""


class TooFewToLearn(DataError):
    text = """The data has fewer than two users or items, so there is nothing to learn. Add data, or check how
    it is read."""


class NoPreference(DataError):
    text = """All ratings are equal, so they contain no preference. Learn from interactions:
    UserFactorization(feedback="implicit")."""


class RowsNeeded(ParameterError):
    model: str
    text = """{model} computes something for each user, so it can't learn from shards or a cluster. Fit it on
    data in memory."""


class MemoryNeeded(ParameterError):
    argument: str
    text = "{arg:{argument}} works for data in memory, and this data is in shards. Remove it, or read a file."


class ScaleUnused(ParameterError):
    model: str
    text = "{model} reads no ratings here, so it needs no scale. Remove the scale."


class RealNoiseInRehearsal(PrivacyError):
    text = "A rehearsal costs no budget, so it needs simulated noise. Call fit to train with real noise."


class NotPairs(ParameterError):
    name: str
    text = """{name} has a different length than the other argument, but each row needs one item. Pass two
    arrays of equal length: rows of the histories, and items of the catalog."""


class UnknownItems(DataError):
    count: int
    of: int
    where: str = "history"
    examples: tuple[object, ...] = ()
    text = """{count} of {of:item|items} in the {where} {be} in the model's catalog{shown}. Remove them, or
    pass {arg:ignore_unknown=True}."""

    @property
    def be(self) -> str:
        """The verb."""
        return "isn't" if self.count == 1 else "aren't"

    @property
    def shown(self) -> str:
        """A few of the items, which the caller gave."""
        more = ", ..." if len(self.examples) < self.count else ""
        return f" ({', '.join(map(repr, self.examples))}{more})" if self.examples else ""


class UnknownItem(DataError):
    item: str
    near: tuple[str, ...]
    example: str
    of: int
    text = "The item {item!r} isn't in the model's catalog of {of:item|items}. {hint}"

    @property
    def hint(self) -> str:
        """The most similar items, or what an ID looks like."""
        return f"Did you mean {' or '.join(self.near)}?" if self.near else f"An ID looks like {self.example}."


class NoHistories(DataError):
    text = """No history was passed, so nothing can be recommended. Pass at least one history. It may be
    empty."""


class MixedOrders(DataError):
    text = """Some histories have an order and others don't, but one call accepts only one kind. Pass all of
    them as lists, oldest first, or all as mappings."""


class RatingsNeeded(DataError):
    text = """The model was fitted on ratings, and the history has none. Pass (item, rating) pairs, oldest
    first, or a mapping."""


class OffScale(DataError):
    low: float
    high: float
    step: float | None
    text = """The history has ratings that aren't on the model's scale, {low} to {high}{steps}. Pass ratings
    on that scale."""

    @property
    def steps(self) -> str:
        """The step of the scale."""
        return "" if self.step is None else f" in steps of {self.step:g}"


class OtherCatalog(DataError):
    text = """The histories have a different catalog than the model, so their items can't be matched. Read
    them with the model's catalog."""


class NoRatingsPredicted(ParameterError):
    text = """The model was fitted for lists, so it ignores rating values and predicts none. Fit it with
    {arg:purpose=both}, or use its scores."""


class NotAList(DataError):
    name: str
    text = "{arg:{name}} is a text, but it must be a list of item IDs. Put the ID into a list."


class NotOnDevice(ParameterError):
    model: str
    possible: str
    text = "A device can't compute lists of {model}, because it doesn't have all their parts. Use {possible}."


class BundleTooLarge(ParameterError):
    what: str
    megabytes: float
    most: float
    text = """{what} takes {megabytes:,.0f} MB, and a bundle may have {most:,.0f} MB. Choose int8, fewer items
    or factors, or shorter titles."""


class BadPackageName(ParameterError):
    name: str
    text = "{name!r} isn't a name that npm allows. Use lowercase letters, digits, and dashes."


class NotSearchable(ParameterError):
    model: str
    text = """Lists of {model} aren't ordered by inner products, so a vector store can't find them. Fit
    user-factorization with {arg:purpose=lists} or {arg:implicit=True}, use implicit-als, or export to
    onnx."""


class NoVectors(DiscreetError):
    model: str = "This model"
    text = """{model} has no item vectors, so it can't compare items. Use user-factorization, or ask for
    recommendations."""


class NoFactorsFound(DiscreetError):
    text = """The model found no latent factors above the noise, only one overall score for each item, so it
    can't find similar items. More users, a larger epsilon, or public item features would help."""


# Methods of earlier versions and of other libraries, and the call that does the same here.
_CALLS = {
    "similar_items(item, k=10)": "similar neighbors neighbours get_neighbors most_similar",
    "recommend(history, k=10)": "recommend_for_user predict_for_user top_n top_k get_recommendations",
    "recommend_all(histories)": "recommend_many recommend_for_all_users recommendForAllUsers",
    "recommend(history, among=items)": "rank_items rank score score_items",
    "titles([item])": "title item_title item_titles",
    "scorer.item_vectors()": "item_factors item_vectors item_embeddings item_biases",
    "guarantee": "privacy epsilon label",
}
_INSTEAD = {name: call for call, names in _CALLS.items() for name in names.split()}


class NoSuchMember(DiscreetError, AttributeError):
    member: str
    members: Collection[str]
    text = "A fitted model has no {member!r}.{instead}"

    @property
    def instead(self) -> str:
        """The call that does the same, or the most similar name."""
        if self.member.startswith("user_") or self.member == "similar_users":
            return " It contains no users: pass a history to model.recommend(history, k=10)."
        call = _INSTEAD.get(self.member) or most_similar(self.member, self.members)
        return "" if call is None else f" Use model.{call}."


class SimilarItemsHasNo(ParameterError):
    given: Collection[str]
    text = "similar_items has no {given:and}. Pass an item and how many: model.similar_items(item, k=10)."


class EntriesOnly(DiscreetError):
    text = "This model releases single entries, so it has no vectors. Ask for an entry with predict."


class EntriesUsedUp(PrivacyError):
    released: int
    asked: int
    most: int
    text = """{released:entry was|entries were} released and {asked} new ones are asked for, but the guarantee
    covers {most}. Fit with more cells, each of which costs epsilon."""


class EntriesNotReleased(PrivacyError):
    count: int
    text = """{count:entry was|entries were} not released before the model was saved, and a saved model can't
    release more. Ask only for released entries, or fit again."""


class UnknownUser(DataError):
    text = """This model answers only for users it was fitted on, and it doesn't know this user. Choose
    another model for new users."""


class NotFoldedIn(DataError):
    text = """The model can't predict for new users, because its factors are ill-conditioned or it has no
    threshold for likes. Fit the model again."""


class ScaleTooSmall(DataError, ParameterError):
    low: float
    high: float
    text = """The scale from {low} to {high} has too few values for this model. Declare a wider scale, or
    learn from interactions: UserFactorization(feedback="implicit")."""


class ScaleTooWide(DataError):
    width: float
    text = "The rating scale is {width} wide, which single precision can't square. Rescale the ratings."


class TitlesTooWide(DataError):
    columns: int
    most: int
    text = """The table of titles has {columns} columns next to the IDs, and a model stores at most {most}.
    Remove some."""


class TooFewKnown(DataError):
    known: int
    least: int
    text = """The table has {known} items that the model knows, and learning from features needs {least}. Pass
    the table of all items."""


class NothingNew(DataError):
    text = """The model already knows all items of the table, so there is nothing to add. Pass a table that
    also has new items."""


class OtherIds(DataError):
    text = "The model's item IDs are whole numbers, but the new IDs aren't. Use whole numbers."


class SelectionTooSmall(DataError):
    what: str
    text = """There are too few users to select the {what} with this budget: the noise would decide the
    selection. Declare the {what}, or spend a larger share on it."""


class SelectionNeedsBudget(PrivacyError):
    text = """Selecting a catalog needs a finite epsilon and a delta above 0. Declare the catalog, or pass
    both."""


class SelectionMismatch(PrivacyError):
    model: str
    text = """{model} doesn't protect whole users, or its guarantee depends on the catalog, so facts can't be
    selected with noise. Declare them."""


class ScaleFromData(ParameterError):
    text = """The scale was read from the data, so the guarantee would still depend on it. Declare {arg:low},
    {arg:high}, and {arg:step}, or select the scale."""


class ScaleDeclared(ParameterError):
    text = "The scale is declared, so it can't also be selected. Remove {arg:select_scale}."


class TimesNeeded(DataError):
    setting: str
    text = "{arg:{setting}} needs times, and the ratings have none. Remove it, or add a column of times."


class UnknownRanking(ParameterError):
    value: str
    known: tuple[str, ...]
    text = "The model can't order lists by {value!r}. {possible}"

    @property
    def possible(self) -> str:
        """What the model can order lists by."""
        known = " or ".join(map(repr, self.known))
        return f"It can order them by {known}." if known else "It has one order only: remove rank_by."


class BadHistoryText(DataError):
    text = 'The history isn\'t valid JSON. Pass JSON text, such as "[7, 3]" or "[[7, 4.0], [3, 5.0]]".'


class NotAModel(FileError):
    path: object
    text = "{path} isn't a discreet model, or it is damaged. Pass a file that `discreet fit` wrote."


class OtherVersion(FileError):
    path: object
    text = """{path} is a discreet model that this version can't read. Upgrade discreet, or fit the model
    again."""


class ModelChanged(FileError):
    path: object
    text = """{path} doesn't match its checksum: it was modified or damaged after it was written, so its
    guarantee may be false. Get a fresh copy, or fit the model again."""


class MalformedPart(DataError):
    part: str
    rule: str
    text = """{part} in the model file is malformed: its {rule} is wrong. Get a fresh copy, or fit the model
    again."""


class BadKey(FileError):
    path: object
    text = """{path} isn't an Ed25519 key that can be read without a password. Make a new key, or pass its
    path."""


class BadSignature(FileError):
    path: object
    file: object
    text = """The signature {path} doesn't match the content of {file}: one of them changed after signing.
    Don't trust the file, or sign it again."""


class PriorNotPrivate(PrivacyError):
    path: object
    text = """{path} isn't private, or its privacy definition differs from this fit's, so the fit can't
    start from it. Start from a private release, or remove {arg:prior}."""


class PriorUnusable(DataError):
    path: object
    text = """{path} has no item effects for this catalog, so a fit can't start from it. Start from a model of
    ratings with this catalog, or remove {arg:prior}."""


class BadStoreName(ParameterError):
    value: str
    text = "{value!r} can't name a table in a store. Use up to 48 letters, digits, and underscores."


class NulInId(DataError):
    text = "An item's ID or title has a NUL character, which PostgreSQL can't store. Rename that item."


class NotOurTable(FileError):
    name: str
    text = "{name} in the store wasn't written by discreet, so it was not changed. Choose another {arg:name}."


class TableExists(FileError):
    name: str
    text = """{name} already exists in the store and was not changed. Pass {arg:force=True} to replace it, or
    choose another {arg:name}."""


class TableInUse(FileError):
    name: str
    text = """Views or other tables depend on {name}, which was not changed. Drop them first, or choose
    another {arg:name}."""


class StoreUnusable(FileError):
    store: str
    example: str
    text = """{store} rejected the request or didn't answer. Check that the address looks like {example}, that
    the user may create tables, and the server's log."""


class PgvectorMissing(FileError):
    text = """The database has no extension `vector`, which stores the vectors. Install pgvector on its server
    (on Debian: postgresql-17-pgvector)."""
