"""95 % intervals: Wilson's of a share, and Student's of a mean. The standard library has no quantile of Student's t."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)
_EXACT_UP_TO = 100
"""Degrees of freedom. Beyond, the expansion is off by less than 1e-10."""


def wilson(yes: int, count: int) -> tuple[float, float]:
    """The interval of a share of yes, by Wilson. It stays within 0 and 1, and has a width even if all said yes."""
    share, z2 = yes / count, _Z * _Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _Z / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return (0.0 if yes == 0 else middle - half, 1.0 if yes == count else middle + half)


def student(count: int, mean: float, variance: float) -> tuple[float, float] | None:
    """The interval of a mean, from the variance of the sample. None for a single number, which says nothing about the
    others.
    """
    if count < 2:
        return None
    half = t_quantile(count - 1) * math.sqrt(variance / count)
    return mean - half, mean + half


@lru_cache(maxsize=1024)
def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with a whole number of degrees of freedom.

    Up to 100 degrees the distribution function is a finite sum, which is inverted by bisection. Beyond, the quantile is
    expanded in powers of 1 / freedom around the normal one (Abramowitz and Stegun, 26.7.5).
    """
    if freedom > _EXACT_UP_TO:
        z = _Z
        terms = (
            z,
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
        )
        return math.fsum(term / freedom**power for power, term in enumerate(terms))
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        low, high = (angle, high) if _within(angle, freedom) < 0.95 else (low, angle)
    return math.tan(angle) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """The probability of -t to t, where t = tan(angle) * sqrt(freedom) (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    square, odd = math.cos(angle) ** 2, freedom % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(freedom // 2):
        total += term
        term *= square * ((2 * step + 2) / (2 * step + 3) if odd else (2 * step + 1) / (2 * step + 2))
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
