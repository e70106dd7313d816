"""All requests at the same mix of routes, before a deploy and after it.

Problem: no route is slower, but the slow ones have four times the traffic. The p95 of all requests
rises, and no deploy is to blame.

Idea: both windows are weighted, so that each route has the same share of either: the mean of its
two shares. The difference that remains is within the routes, and only that is judged; the rest of
the difference is the mix (midpoint decomposition; Kitagawa, "Components of a difference between two
rates", 1955; for error rates the same as in explain.py).

    rest      requests of no listed route, and routes with few requests in both windows, count as
              one route
    new       a route with enough requests in one window only has no other side to compare with: it
              is a part of the mix
    renamed   if less than half of the requests after the deploy have a counterpart, as when all
              routes were renamed, all requests are compared as one route
    weights   a small route that counts several times is a noisier number than its size suggests;
              the dispersion is multiplied by the design effect (Kish, "Survey Sampling", 1965)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redmeter.analysis.comparing.significance import BucketCounts, Counts, sum_counts, total_counts

#: The least share of requests after a deploy that have a counterpart.
_COMPARED = 0.5


class Weights(NamedTuple):
    """By which factors requests count, after the deploy and before."""

    after: float
    before: float


@dataclass(frozen=True, slots=True)
class Mix:
    """The weights by which both windows have the same mix of routes."""

    #: The requests of no listed route.
    rest: Weights
    #: The position of a route -> its weights less those of the rest.
    routes: Mapping[int, Weights]

    def counts(
        self, whole: Sequence[Counts], routes: Sequence[Sequence[Counts]], side: int
    ) -> list[Counts]:
        """Return the weighted counts of each interval.

        Args:
            whole: of all requests; routes: of each route.
            side: 0 for after, 1 for before.
        """
        rest = self.rest[side]
        events = [rest * one.events for one in whole]
        of = [rest * one.of for one in whole]
        for at, weights in self.routes.items():
            weight = weights[side]
            for number, one in enumerate(routes[at]):
                if one.of:
                    events[number] += weight * one.events
                    of[number] += weight * one.of
        return [Counts(max(e, 0.0), max(n, e, 0.0)) for e, n in zip(events, of, strict=True)]

    def buckets(
        self, whole: BucketCounts, routes: Sequence[BucketCounts], side: int
    ) -> dict[int, float]:
        """Return the weighted values by bucket; the arguments are as of counts()."""
        rest = self.rest[side]
        parts = [{bucket: rest * number for bucket, number in whole.items()}]
        for at, weights in self.routes.items():
            weight = weights[side]
            parts.append({bucket: weight * number for bucket, number in routes[at].items()})
        return {bucket: number for bucket, number in sum_counts(parts).items() if number > 1e-9}

    def effect(self, whole: Counts, routes: Sequence[Counts], side: int) -> float:
        """Return by how much the variance of the weighted events is larger than of as many others.

        Args:
            whole: the totals of all requests; routes: those of each route.
        """
        groups = [*self._groups(whole, routes, side)]
        return max(
            (
                sum(weight * weight * one[which] for weight, one in groups)
                / (sum(weight * one[which] for weight, one in groups) or 1.0)
                for which in (0, 1)
            ),
            default=1.0,
        )

    def _groups(
        self, whole: Counts, routes: Sequence[Counts], side: int
    ) -> Iterator[tuple[float, Counts]]:
        rest = self.rest[side]
        events, of = whole
        for at, weights in self.routes.items():
            yield weights[side] + rest, routes[at]
            events, of = events - routes[at].events, of - routes[at].of
        yield rest, Counts(max(events, 0.0), max(of, 0.0))


def same_mix(
    whole: tuple[float, float], routes: Sequence[tuple[float, float]], least: float
) -> Mix | None:
    """Return the weights of the same mix; None if all requests are compared as one route.

    Args:
        whole: all requests, after the deploy and before.
        routes: those of each route.
        least: requests that a route needs in each window.
    """
    after, before = whole
    if not after or not before:
        return None
    scale = min(after / before, 1.0)
    weights: dict[int, Weights] = {}
    rest_after, rest_before = after, before
    for at, (mine, then) in enumerate(routes):
        if min(mine, then) < least and max(mine, then * scale) < least:
            continue
        weights[at] = _weights(mine / after, then / before, min(mine, then) >= least)
        rest_after, rest_before = rest_after - mine, rest_before - then
    enough = min(rest_after, rest_before) >= least
    rest = _weights(rest_after / after, rest_before / before, enough)
    compared = sum(routes[at][0] for at, one in weights.items() if one.after)
    if not weights or compared + enough * rest_after < _COMPARED * after:
        return None
    return Mix(
        rest,
        {
            at: Weights(one.after - rest.after, one.before - rest.before)
            for at, one in weights.items()
        },
    )


def _weights(after: float, before: float, compared: bool) -> Weights:
    if not compared:
        return Weights(0.0, 0.0)
    middle = (after + before) / 2
    return Weights(middle / after, middle / before)


def shift_errors(after: Sequence[Counts], before: Sequence[Counts]) -> float:
    """Return by how many standard errors the mix moved a share, if requests are independent.

    Args:
        after, before: the totals of all requests, then of each route.
    """
    groups = [*zip(after[1:], before[1:], strict=True)]
    listed = [total_counts(column) for column in zip(*groups, strict=True)] or [Counts(0, 0)] * 2
    rest = [
        Counts(max(whole.events - mine.events, 0.0), max(whole.of - mine.of, 0.0))
        for whole, mine in zip((after[0], before[0]), listed, strict=True)
    ]
    sizes = after[0].of, before[0].of
    moved = mean = square = 0.0
    for one, other in (*groups, (rest[0], rest[1])):
        if not one.of and not other.of:
            continue
        share = (one.events + other.events) / (one.of + other.of)
        parts = one.of / sizes[0], other.of / sizes[1]
        moved += (parts[0] - parts[1]) * share
        mean += (parts[0] + parts[1]) / 2 * share
        square += (parts[0] + parts[1]) / 2 * share * share
    variance = max(square - mean * mean, 0.0) * (1 / sizes[0] + 1 / sizes[1])
    return abs(moved) / variance**0.5 if variance else 0.0
