"""Noise for numbers and dates: discrete Laplace on a public grid between public bounds."""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal

from stillroom.errors import BadOption
from stillroom.guarantee import Guarantee
from stillroom.guard.mechanisms.base import Mechanism, check_category, check_epsilon
from stillroom.privacy.noise import Noise

Bound = float | int | str | date

MOST_STEPS = 10_000_000
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[,'\u00a0\u202f](?=\d{3}(?!\d))")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_LONGEST = 30
"""Digits of a value that are read: its size beyond the bounds does not matter."""


class Laplace(Mechanism):
    """Answers a number or a date with a noisy one on the grid low, low + step, … high.

    The value is clipped to the bounds and put on the grid, its place there moved by discrete Laplace noise, and the
    result clipped again (which costs nothing). A value that cannot be read counts as the middle of the grid. Values
    are canonical: numbers with a decimal point, dates as 2031-07-04; what stands around them is not looked at, and the
    answer has one public form.

    Between any two values the place moves by at most all n steps, so with noise of scale n/ε an answer costs ε.

    With `metric`, ε is for two values that lie `metric` apart on the grid, as for two dates 30 days apart, and the
    noise is as much smaller as `metric` is smaller than the range. Farther ones are protected less, and the whole range
    costs ε·(high − low)/metric: that is what `epsilon` says and the account pays, and the label is `metric-dp`.

    Args:
        low, high, step: public, both bounds dates (or 2031-07-04) or both numbers; step in days for dates. high − low
            counts as a whole number of steps, rounded up.
        epsilon: of one draw.
        metric: a distance in the unit of `step`; None for the whole range.

    Raises: BadOption.
    """

    def __init__(
        self,
        category: str,
        *,
        low: Bound | None,
        high: Bound | None,
        step: float | None = 1,
        epsilon: float | None,
        metric: float | None = None,
    ) -> None:
        check_category(category, "laplace")
        epsilon = check_epsilon(category, epsilon)
        self.category = category
        self.dates, self._low, top = _bounds(category, low, high)
        self._step = Decimal(str(step)) if step is not None else Decimal(1)
        if not (self._step.is_finite() and self._step > 0) or (self.dates and self._step != int(self._step)):
            raise BadOption(f"step of {category!r}", step, "above 0, and whole days for dates")
        # A bound or step of 1.0, as TOML has it, is no reason to write ages as 34.0.
        places = [int(each.normalize().as_tuple().exponent) for each in (self._step, self._low)]
        self._decimals = max(0, -min(places))
        if not top > self._low:
            raise BadOption(f"high of {category!r}", high, f"above low, which is {low}")
        self.steps = math.ceil((top - self._low) / self._step)
        if self.steps > MOST_STEPS:
            raise BadOption(f"step of {category!r}", step, f"such that there are at most {MOST_STEPS:,} of them")
        if metric is not None and not 0 < metric <= float(top - self._low):
            raise BadOption(f"metric of {category!r}", metric, "above 0 and at most high − low")
        apart = self.steps if metric is None else min(self.steps, metric / float(self._step))
        self.scale = apart / epsilon
        self.epsilon = epsilon if metric is None else self.steps / self.scale
        self.guarantee = Guarantee.LDP_PER_VALUE if metric is None else Guarantee.METRIC_DP
        kind = "days" if self.dates else "numbers"
        grid = f"{self._low.normalize():f} + {self.steps} × {self._step.normalize():f}"
        self.version = f"laplace-1 {kind} {grid} scale={self.scale!r}"

    def draw(self, value: str, noise: Noise) -> str:
        place = noise.laplace(self.place(value), sensitivity=self.steps, scale=self.scale)
        return self.says(min(max(place, 0), self.steps))

    def place(self, value: str) -> int:
        """Return where a value lies on the grid, 0…steps."""
        read = _day(value) if self.dates else _number(value)
        if read is None:
            return self.steps // 2
        top = self._low + self.steps * self._step
        return round((min(max(read, self._low), top) - self._low) / self._step)

    def says(self, place: int) -> str:
        """Return the text of a place on the grid."""
        value = self._low + place * self._step
        if self.dates:
            return date.fromordinal(min(int(value), date.max.toordinal())).isoformat()
        return f"{value:.{self._decimals}f}"


def _bounds(category: str, low: Bound | None, high: Bound | None) -> tuple[bool, Decimal, Decimal]:
    days = [_as_day(bound) for bound in (low, high)]
    if days[0] is not None and days[1] is not None:
        return True, days[0], days[1]
    numbers: list[Decimal] = []
    for name, bound in (("low", low), ("high", high)):
        # A float is one of float64; its shortest text is what the policy's author wrote.
        fits = isinstance(bound, (int, float)) and not isinstance(bound, bool) and math.isfinite(bound)
        if not fits:
            raise BadOption(f"{name} of {category!r}", bound, "a number, or both bounds dates such as 1900-01-01")
        numbers.append(Decimal(str(bound)))
    return False, numbers[0], numbers[1]


def _as_day(bound: Bound | None) -> Decimal | None:
    if isinstance(bound, date):
        return Decimal(bound.toordinal())
    return _day(bound) if isinstance(bound, str) else None


def _day(value: str) -> Decimal | None:
    found = _DAY.search(value)
    if not found:
        return None
    try:
        return Decimal(date(*map(int, found.groups())).toordinal())
    except ValueError:
        return None


def _number(value: str) -> Decimal | None:
    found = _NUMBER.search(_THOUSANDS.sub("", value))
    if not found:
        return None
    whole, _, part = found[0].replace("−", "-").partition(".")
    if len(whole) > _LONGEST:
        return Decimal("-1e30" if whole[0] == "-" else "1e30")
    return Decimal(f"{whole}.{part[:_LONGEST] or 0}")
