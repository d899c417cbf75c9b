from discreet.follow.agreement import FollowAgreement as FollowAgreement
from discreet.follow.coordinator import FollowCoordinator as FollowCoordinator
from discreet.follow.party import FollowParty as FollowParty
from discreet.follow.replay import replay_year as replay_year
from discreet.follow.settings import FollowSettings as FollowSettings
from discreet.follow.stream import Following as Following
from discreet.follow.stream import Status as Status
from discreet.follow.supplies import RatingColumns as RatingColumns
