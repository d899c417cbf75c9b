"""Files that carry certificates: models, continual releases, and synthetic tables, genuine and forged."""

import pytest
from discreet_verify import main

from discreet.core.randomness import PrivacyRandom
from followed_years import CHOICES, STARS, batch, weeks, year
from toy import toy_interactions

DATA = toy_interactions(seed=2)


def verdict(path, capsys):
    capsys.readouterr()
    code = main([str(path)])
    out = capsys.readouterr().out
    assert out.startswith("certified" if code == 0 else "rejected")
    return code, out


@pytest.mark.parametrize("facts", [STARS, CHOICES], ids=["ratings", "interactions"])
def test_a_continual_release_and_its_models_are_certified(facts, tmp_path, capsys):
    followed = year(tmp_path, facts)
    for one in weeks(2):
        followed.add(one if facts is STARS else batch([(f"u{k}", f"i{k}", 1) for k in range(12)], facts))
    path = tmp_path / "m.discreet"
    followed.model().save(path)
    assert verdict(path, capsys)[0] == 0
    assert verdict(followed.path, capsys)[0] == 0


def test_a_simulated_continual_release_is_rejected(tmp_path, capsys):
    followed = year(tmp_path)
    followed.add(weeks(1)[0], random=PrivacyRandom.simulate(1))
    assert verdict(followed.path, capsys)[0] == 1
