"""Keys of invitations that a curious operator could publish, to match requests with tokens."""

import math


def smooth_modulus():
    """Return an odd number of 2,048 bits that has small prime factors only.

    Whoever asks under it shows which of the primes divide the encoded message, before and after blinding.
    """
    numbers = range(3, 8000)
    primes = [one for one in numbers if all(one % other for other in range(2, math.isqrt(one) + 1))]
    product, rest = 1, iter(primes)
    while product.bit_length() < 2030:
        product *= next(rest)
    return next(product * prime for prime in rest if (product * prime).bit_length() == 2048)


def hostile_keys():
    """Return entries of a campaign about its key, none of which may be read."""
    smooth, fine = smooth_modulus(), (1 << 2047) + 29
    return {
        "small factors": {"modulus": f"{smooth:x}"},
        "one small factor": {"modulus": f"{65521 * (fine >> 16 | 1):x}"},
        "even": {"modulus": f"{fine + 1:x}"},
        "too short": {"modulus": f"{(1 << 1023) + 1155:x}"},
        "too long": {"modulus": f"{(1 << 4103) + 1:x}"},
        "bits that are no bytes": {"modulus": f"{(1 << 2049) + 1:x}"},
        "an exponent of its own": {"modulus": f"{fine:x}", "exponent": 3},
        "no number": {"modulus": 7},
        "nothing": None,
    }
