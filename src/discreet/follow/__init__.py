"""Keep models fresh all year at one budget: every rating enters once, and all releases are one Gaussian."""

from __future__ import annotations

from discreet.follow.settings import FollowSettings
from discreet.follow.stream import Following, Status

__all__ = ["FollowSettings", "Following", "Status"]
