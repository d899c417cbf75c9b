import copy
import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.core import randomness
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.testing import refuses
from evidence import cumulative, follows, gap, samples_to_separate

# What is tested here is where noise comes from.
pytestmark = pytest.mark.real_noise


def test_a_simulation_repeats_and_a_real_source_does_not():
    assert PrivacyRandom.simulate(7).bytes(100).tobytes() == PrivacyRandom.simulate(7).bytes(100).tobytes()
    assert PrivacyRandom.simulate(7).bytes(100).tobytes() != PrivacyRandom.simulate(8).bytes(100).tobytes()
    assert PrivacyRandom.from_os().bytes(100).tobytes() != PrivacyRandom.from_os().bytes(100).tobytes()
    assert PrivacyRandom.simulate(7).simulated
    assert not PrivacyRandom.from_os().simulated


def test_the_bytes_are_aes_in_counter_mode():
    key = hashlib.sha256(b"discreet simulation 5").digest()
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    assert PrivacyRandom.simulate(5).bytes(3_000_000).tobytes() == cipher.update(bytes(3_000_000))


def test_the_stream_does_not_depend_on_the_size_of_the_bites():
    whole = PrivacyRandom.simulate(1).bytes(2_500_000)
    source = PrivacyRandom.simulate(1)
    parts = [source.bytes(count) for count in (0, 1, 15, 16, 17, 1_000_000, 1_499_951)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_bytes_are_uniform():
    uniform, lopsided = (
        cumulative(np.full(256, 1 / 256)),
        cumulative(np.repeat([1.05 / 256, 0.95 / 256], 128)),
    )
    count = samples_to_separate(gap(uniform, lopsided, np.arange(256)))
    sample = PrivacyRandom.simulate(3).bytes(count).astype(np.int64)
    assert follows(sample, uniform)
    assert not follows(sample, lopsided)


def test_a_new_key_is_taken_before_the_old_one_is_worn_out(monkeypatch):
    monkeypatch.setattr(randomness, "_BYTES_PER_KEY", 64)
    for source in (PrivacyRandom.from_os(), PrivacyRandom.simulate(1)):
        blocks = {source.bytes(16).tobytes() for _ in range(100)}
        assert len(blocks) == 100
    repeated = [PrivacyRandom.simulate(1).bytes(48).tobytes() for _ in range(2)]
    assert repeated[0] == repeated[1]


def test_children_of_a_simulation_repeat_by_name():
    parent = PrivacyRandom.simulate(4)
    first, again, other = (parent.spawn(name).bytes(32).tobytes() for name in ("a", "a", "b"))
    assert first == again != other
    assert parent.spawn("a").simulated
    real = PrivacyRandom.from_os()
    assert real.spawn("a").bytes(32).tobytes() != real.spawn("a").bytes(32).tobytes()
    assert not real.spawn("a").simulated


def test_a_script_is_played_once_and_then_refused():
    source = PrivacyRandom.scripted(b"\x01\x02\x03")
    assert source.simulated
    assert source.bytes(2).tolist() == [1, 2]
    with refuses("script-too-short", left=1, asked=2):
        source.bytes(2)
    assert source.bytes(1).tolist() == [3]
    with refuses("not-a-source"):
        source.spawn("a")


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_source_has_one_holder(duplicate):
    with refuses("not-a-source"):
        duplicate(PrivacyRandom.from_os())


def test_a_source_is_not_made_by_its_class():
    with refuses("not-a-source"):
        PrivacyRandom()


def test_threads_share_a_stream_without_sharing_bytes():
    source = PrivacyRandom.simulate(2)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: source.bytes(4096).tobytes(), range(400)))
    whole = PrivacyRandom.simulate(2).bytes(400 * 4096).tobytes()
    assert sorted(parts) == sorted(whole[start : start + 4096] for start in range(0, len(whole), 4096))


_FORKING = """
import os, sys
from discreet.core.randomness import PrivacyRandom

def draw_in_children(source, children):
    drawn = []
    for _ in range(children):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, source.bytes(32).tobytes())
            os._exit(0)
        drawn.append(os.read(reading, 32))
        os.wait()
    return drawn

for source in (PrivacyRandom.from_os(), PrivacyRandom.simulate(1)):
    source.bytes(5)
    with source._stream.lock:  # Another thread may hold it while the process forks.
        drawn = draw_in_children(source, 3)
    drawn.append(source.bytes(32).tobytes())
    assert len(set(drawn)) == 4, "two processes read the same stream"
    assert all(len(part) == 32 for part in drawn)
expected = PrivacyRandom.simulate(1)
expected.bytes(5)
assert drawn[-1] == expected.bytes(32).tobytes(), "a fork disturbed the parent's stream"
"""


def test_no_two_processes_read_the_same_stream():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKING],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", [-1, 1.5, "3", True])
def test_a_bad_count_is_refused(count):
    with pytest.raises(ParameterError) as caught:
        PrivacyRandom.simulate(1).bytes(count)
    assert caught.value.name == "count"


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_a_bad_seed_is_refused(seed):
    for take in (PrivacyRandom.simulate, experiment_generator):
        with pytest.raises(ParameterError) as caught:
            take(seed)
        assert caught.value.name == "seed"


def test_each_purpose_of_an_experiment_has_its_own_stream():
    def draw(*purpose):
        return experiment_generator(1, *purpose).integers(0, 1 << 60, 4).tolist()

    assert draw("split") == draw("split")
    assert draw("split") != draw("synthetic")
    assert draw("split", 1) != draw("split", 2)


def test_a_source_says_what_it_is():
    sources = PrivacyRandom.from_os(), PrivacyRandom.simulate(1), PrivacyRandom.scripted(b"")
    assert [repr(source) for source in sources] == [
        f"<PrivacyRandom {k}>" for k in ("from_os", "simulated", "scripted")
    ]
