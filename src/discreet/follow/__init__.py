"""Keep models fresh all year at one budget: every rating enters once, and all releases are one Gaussian."""

from __future__ import annotations

from discreet.core.exports import Exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.follow.agreement import FollowAgreement as FollowAgreement
    from discreet.follow.columns import RatingColumns as RatingColumns
    from discreet.follow.coordinator import FollowCoordinator as FollowCoordinator
    from discreet.follow.party import FollowParty as FollowParty
    from discreet.follow.replay import replay_year as replay_year
    from discreet.follow.settings import FollowSettings as FollowSettings
    from discreet.follow.stream import Following as Following
    from discreet.follow.stream import Status as Status
else:
    _exports = Exports(
        "discreet.follow",
        {
            "discreet.follow.settings": "FollowSettings",
            "discreet.follow.stream": "Following Status",
            "discreet.follow.agreement": "FollowAgreement",
            "discreet.follow.party": "FollowParty",
            "discreet.follow.columns": "RatingColumns",
            "discreet.follow.replay": "replay_year",
            "discreet.follow.coordinator": "FollowCoordinator",
        },
    )
    __all__ = _exports.names
    __getattr__ = _exports.find

    def __dir__() -> list[str]:
        return __all__
