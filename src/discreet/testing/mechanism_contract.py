"""Check that a mechanism has a cost, rejects what it can't protect, and draws the noise it is given."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting import SelfComposedDpEvent

from discreet.core import PrivacyRandom
from discreet.core.checks import DataError, ParameterError, PrivacyError
from discreet.privacy import delta_at, epsilon_at
from discreet.testing.small_data import notes_folder


class MechanismContract:
    """The contract of one mechanism.

    `parameters` make an instance, and `values` are four inputs that are exact in single precision.
    `never_free` are parameters without noise, which the accountant must reject. `takes_mask` means that a
    release also needs a mask of the present values, and `empty_is_empty` that no input gives no output.
    `proofs_in` is the folder of the notes that it names.

    Example:
        >>> from discreet.privacy.mechanisms.additive import Laplace
        >>> class TestLaplace(MechanismContract):
        ...     mechanism, parameters = Laplace, {"scale": 1.0, "bound": 1.0}
        ...     values = (0.0, 0.5, 1.0, 2.0)
        >>> TestLaplace.takes_mask
        False

    Stability
        Stable.
    """

    mechanism: ClassVar[type]
    parameters: ClassVar[Mapping[str, Any]]
    values: ClassVar[Sequence[Any]]
    never_free: ClassVar[Mapping[str, Any]] = {}
    takes_mask: ClassVar[bool] = False
    empty_is_empty: ClassVar[bool] = True
    proofs_in: ClassVar[Path | None] = None

    def make(self, **changes: Any) -> Any:
        """Return the mechanism with some parameters changed."""
        return self.mechanism(**{**self.parameters, **changes})

    def release(self, values: Any, random: PrivacyRandom) -> npt.NDArray[Any]:
        """Release and return everything that comes out as one array."""
        options = {}
        if self.takes_mask:
            options["present"] = np.arange(np.size(values)).reshape(np.shape(values)) % 2 == 0
        result = _drawing(self.make())(values, random, **options)
        if isinstance(result, tuple):
            return np.concatenate([np.ravel(part) for part in result])
        return np.asarray(result)

    def many(self) -> npt.NDArray[np.float64]:
        """Return enough input values for two releases never to agree by chance."""
        values = np.array(self.values, dtype=np.float64)
        return np.tile(values, (64,) + (1,) * (values.ndim - 1))

    def _needs(self, method: str) -> None:
        if not hasattr(self.mechanism, method):
            pytest.skip("this is not a local mechanism")

    def test_is_a_final_frozen_keyword_only_dataclass(self) -> None:
        kind = self.mechanism
        assert getattr(kind, "__final__", False)
        assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert all(entry.kw_only for entry in dataclasses.fields(kind))
        assert not hasattr(self.make(), "__dict__")
        assert self.make() == self.make() and hash(self.make()) == hash(self.make())
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(self.make(), dataclasses.fields(kind)[0].name, 2.0)

    def test_says_its_guarantee_and_names_a_proof_that_exists(self) -> None:
        text = inspect.getdoc(self.mechanism) or ""
        section = re.search(r"^Guarantee\n((?:    .*\n|\n)+)", text, flags=re.MULTILINE)
        assert section, "the docstring needs a Guarantee section"
        root = self.proofs_in or notes_folder()
        notes = [root / note for note in re.findall(r"proofs/\w+\.md", section.group(1))]
        assert notes and all(note.is_file() for note in notes)
        assert any(self.mechanism.__name__ in note.read_text(encoding="utf-8") for note in notes)

    def test_takes_randomness_and_never_a_seed(self) -> None:
        names = set(inspect.signature(_drawing(self.mechanism)).parameters)
        assert "random" in names and not names & {"seed", "rng", "random_state"}

    def test_its_event_has_a_price_and_repeating_costs_as_much_again(self) -> None:
        event = self.make().event()
        once = epsilon_at(event, 1e-6)
        assert 0 < once < math.inf
        assert once < epsilon_at(SelfComposedDpEvent(event, 3), 1e-6) < math.inf
        pure = epsilon_at(event, 0.0)
        if math.isfinite(pure):
            assert epsilon_at(SelfComposedDpEvent(event, 3), 0.0) == pytest.approx(3 * pure, rel=1e-12)
            assert delta_at(event, pure) == 0.0
        if "epsilon" in self.parameters:
            assert pure == self.make().epsilon

    def test_without_noise_it_is_refused_by_the_accountant(self) -> None:
        if not self.never_free:
            pytest.skip("it cannot be made without noise")
        with pytest.raises(PrivacyError):
            epsilon_at(self.make(**self.never_free).event(), 1e-6)

    @pytest.mark.parametrize("bad", [math.nan, "1", True, [1.0], -math.inf])
    def test_bad_parameters_are_refused(self, bad: Any) -> None:
        for parameter in (entry.name for entry in dataclasses.fields(self.mechanism)):
            with pytest.raises(ParameterError):
                self.make(**{parameter: bad})

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.inf])
    def test_epsilon_is_positive_and_finite(self, bad: float) -> None:
        if "epsilon" not in self.parameters:
            pytest.skip("it has no epsilon")
        with pytest.raises(ParameterError, match="epsilon"):
            self.make(epsilon=bad)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_values_that_are_no_numbers_are_refused_without_saying_where(self, bad: float) -> None:
        values = self.many()
        values.reshape(-1)[5] = bad
        with pytest.raises(DataError) as error:
            self.release(values, PrivacyRandom.simulate(1))
        assert "5" not in re.sub(r"\[.*?\]", "", str(error.value))

    def test_the_same_simulation_gives_the_same_release_and_another_does_not(self) -> None:
        values = self.many()
        first = self.release(values, PrivacyRandom.simulate(1))
        np.testing.assert_array_equal(first, self.release(values, PrivacyRandom.simulate(1)))
        assert not np.array_equal(first, self.release(values, PrivacyRandom.simulate(2)))
        real, other = (self.release(values, PrivacyRandom.from_os()) for _ in range(2))
        assert not np.array_equal(real, other)

    def test_the_input_is_left_alone_and_its_layout_does_not_matter(self) -> None:
        values = self.many()
        expected = self.release(values, PrivacyRandom.simulate(3))
        sealed = values.copy()
        sealed.setflags(write=False)
        gaps = np.zeros((2 * len(values), *values.shape[1:]))
        gaps[::2] = values
        layouts = [
            sealed,
            values.astype(np.float32),
            gaps[::2],
            values[::-1].copy()[::-1],
            np.asfortranarray(values),
            values.tolist(),
        ]
        for layout in layouts:
            before = np.array(layout, copy=True)
            np.testing.assert_array_equal(self.release(layout, PrivacyRandom.simulate(3)), expected)
            np.testing.assert_array_equal(np.asarray(layout), before)

    def test_an_empty_input_is_no_error(self) -> None:
        result = self.release(self.many()[:0], PrivacyRandom.simulate(4))
        assert np.all(np.isfinite(result))
        assert not self.empty_is_empty or result.size == 0

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 8.0])
    def test_no_report_tells_two_inputs_apart_by_more_than_epsilon(self, epsilon: float) -> None:
        self._needs("largest_log_ratio")
        loss = self.make(epsilon=epsilon).largest_log_ratio()
        assert loss <= epsilon
        assert loss == pytest.approx(epsilon, abs=1e-7)
        # The channel that models compute with is the one that is drawn from.
        transition = self.make(epsilon=epsilon).channel().transition
        np.testing.assert_allclose(transition.sum(axis=1), 1.0, atol=1e-12)
        ratios = np.log(transition.max(axis=0)) - np.log(transition.min(axis=0))
        assert ratios.max() <= epsilon + 1e-12

    def test_a_local_mechanism_knows_what_its_reports_say(self) -> None:
        self._needs("largest_log_ratio")
        mechanism, values = self.make(), self.values
        means, spread = mechanism.mean(values), mechanism.variance(values)
        assert np.all(np.isfinite(means)) and np.all(spread > 0)
        np.testing.assert_allclose(mechanism.inverse_mean(means), values, atol=1e-9)
        likelihood = mechanism.likelihood(np.asarray(values)[:, None], np.asarray(values)[None, :])
        assert likelihood.shape == (4, 4) and np.all((likelihood > 0) & (likelihood < 1))


def _drawing(mechanism: Any) -> Callable[..., Any]:
    """Return the drawing method. Mechanisms of cells can't release rated cells alone, so they report them."""
    draw: Callable[..., Any] = getattr(mechanism, "report", None) or mechanism.release
    return draw
