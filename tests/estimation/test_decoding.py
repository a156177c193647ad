"""Decoders are right on average: all responses are enumerated, in fractions if those are exact."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import expost as xp
from expost.estimation.frequencies import IndicatorDecoder, InverseDecoder, decoder_for
from expost.queries import FiniteLikelihood, Query
from expost.queries.values.local_hashing import _HashedLikelihood
from support.random_cases import EPSILONS, exact_rows

SPEAKING: list[Query] = [
    xp.randomized_response(epsilon="0.7"),
    xp.unary_encoding(variant="symmetric", epsilon="0.7"),
    xp.unary_encoding(variant="optimized", epsilon=2),
    xp.subset_selection(size=1, epsilon="0.7"),
    xp.subset_selection(size=2, epsilon=3),
    xp.hadamard_response(order=8, epsilon="0.7"),
    xp.hadamard_response(order=16, epsilon=5),
]
TABLES: list[Query] = [
    xp.channel([["1/2", "1/4", "1/4"], ["1/8", "3/4", "1/8"], ["0", "1/3", "2/3"]]),
    xp.channel([["1/2", "1/4", "1/4", 0], ["1/8", "1/4", "1/8", "1/2"], [0, 0, "1/3", "2/3"]]),
    xp.geometric(range=(0, 2), sensitivity=2, epsilon=1),
    xp.geometric(range=(-1, 6), sensitivity=2, epsilon="0.3"),
    xp.exponential_mechanism([[2, 1, 0], [1, 2, 1], [0, 1, 2]], sensitivity=2, epsilon=1),
    xp.piecewise({"value": 1}, range=(0, 2), grid=1, window=2, epsilon=1),
    xp.laplace({"value": 1}, range=(0, 2), grid=1, epsilon=4),
]


def response_probabilities(likelihood: FiniteLikelihood) -> list[list[Fraction]]:
    """Pr(response | value), a row per value."""
    positions = range(len(likelihood.responses))
    pmfs = [likelihood.pmf(index) for index in range(len(likelihood.domain))]
    return [[pmf.probability(position) for position in positions] for pmf in pmfs]


def moments(
    rows: list[list[Fraction]], entries: list[list[Fraction]]
) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """E[c_j(Y) | x = k] and the variance, by going through all responses; a row per j."""
    means = [[sum(p * c for p, c in zip(row, cs, strict=True)) for row in rows] for cs in entries]
    squares = [
        [sum(p * c * c for p, c in zip(row, cs, strict=True)) for row in rows] for cs in entries
    ]
    variances = [
        [square - mean**2 for square, mean in zip(*pair, strict=True)]
        for pair in zip(squares, means, strict=True)
    ]
    return (
        [[Fraction(mean) for mean in row] for row in means],
        [[Fraction(variance) for variance in row] for row in variances],
    )


def identity(size: int) -> list[list[int]]:
    return [[int(j == k) for k in range(size)] for j in range(size)]


def exact_numbers(decoder: IndicatorDecoder, likelihood: FiniteLikelihood) -> list[list[Fraction]]:
    spoken = [decoder.likelihood.supported_values(y) for y in range(len(likelihood.responses))]
    size = len(likelihood.domain)
    return [
        [decoder.inside_weight if flags[j] else decoder.outside_weight for flags in spoken]
        for j in range(size)
    ]


@pytest.mark.parametrize("size", [3, 4, 6])
@pytest.mark.parametrize("query", SPEAKING, ids=repr)
def test_what_speaks_for_values_is_decoded_without_any_bias(query: Query, size: int) -> None:
    likelihood = query.on(xp.FiniteSet(range(size)))
    decoder = decoder_for(likelihood)
    assert isinstance(decoder, IndicatorDecoder)
    entries = exact_numbers(decoder, likelihood)
    means, variances = moments(response_probabilities(likelihood), entries)
    assert means == identity(size)
    assert decoder.variance.shared == 0
    for j, k in itertools.product(range(size), repeat=2):
        variance = decoder.variance.true if j == k else decoder.variance.other
        assert float(variance) == pytest.approx(float(variances[j][k]), rel=1e-12)
    for position in range(len(likelihood.responses)):
        decoded = decoder.decode(position)
        assert decoded.tolist() == [float(row[position]) for row in entries]


@pytest.mark.parametrize(("size", "buckets"), [(2, 2), (3, 2), (3, 3), (4, 2), (2, 5)])
def test_local_hashing_is_decoded_without_bias_over_all_hashes(size: int, buckets: int) -> None:
    domain = xp.FiniteSet(range(size))
    example = xp.local_hashing(seed="5eed", buckets=buckets, epsilon="0.7").on(domain)
    assert isinstance(example, _HashedLikelihood)
    heavy, light = example._heavy, example._light
    hashes = list(itertools.product(range(buckets), repeat=size))
    mean_of: list[list[list[Fraction]]] = []
    variance_of: list[list[list[Fraction]]] = []
    for buckets_of in hashes:
        likelihood = _HashedLikelihood(domain, buckets, np.array(buckets_of), heavy, light)
        decoder = decoder_for(likelihood)
        assert isinstance(decoder, IndicatorDecoder)
        means, variances = moments(
            response_probabilities(likelihood), exact_numbers(decoder, likelihood)
        )
        mean_of.append(means)
        variance_of.append(variances)
    for j, k in itertools.product(range(size), repeat=2):
        means_here = [means[j][k] for means in mean_of]
        average = sum(means_here, Fraction(0)) / len(hashes)
        assert average == int(j == k)
        within = sum((v[j][k] for v in variance_of), Fraction(0)) / len(hashes)
        between = sum(((m - average) ** 2 for m in means_here), Fraction(0)) / len(hashes)
        noise = decoder.variance
        if j == k:
            assert float(noise.true) == pytest.approx(float(within), rel=1e-12)
            assert between == 0
        else:
            assert float(noise.other) == pytest.approx(float(within), rel=1e-12)
            assert noise.shared == pytest.approx(float(between), rel=1e-12)


def check_table(query: Query, size: int) -> None:
    likelihood = query.on(xp.FiniteSet(range(size)))
    decoder = decoder_for(likelihood)
    assert isinstance(decoder, InverseDecoder)
    rows = response_probabilities(likelihood)
    entries = [[Fraction(entry) for entry in row] for row in decoder.matrix.tolist()]
    means, variances = moments(rows, entries)
    largest = max(abs(entry) for row in decoder.matrix.tolist() for entry in row)
    for j, k in itertools.product(range(size), repeat=2):
        assert abs(float(means[j][k]) - (j == k)) < 1e-8
        variance = decoder.variance.true[j] if j == k else decoder.variance.other[j, k]
        assert float(variance) == pytest.approx(
            float(variances[j][k]), rel=1e-6, abs=1e-9 * largest**2
        )


@pytest.mark.parametrize("query", TABLES, ids=repr)
def test_other_families_are_decoded_by_an_inverse(query: Query) -> None:
    check_table(query, 3)


@given(exact_rows(2, zeros=True))
def test_any_channel_that_can_be_inverted_is(rows: list[list[Fraction]]) -> None:
    assume(max(abs(a - b) for a, b in zip(*rows, strict=True)) > 0)
    check_table(xp.channel(rows), 2)


@given(exact_rows(3, zeros=True), st.data())
def test_a_square_channel_has_the_one_inverse_that_there_is(
    rows: list[list[Fraction]], data: st.DataObject
) -> None:
    assume(len(rows[0]) == 3)
    (a, b, c), (d, e, f), (g, h, i) = rows
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    assume(determinant)
    # The adjugate, transposed: column j has what the responses say of value j.
    cofactors = [
        [e * i - f * h, -(d * i - f * g), d * h - e * g],
        [-(b * i - c * h), a * i - c * g, -(a * h - b * g)],
        [b * f - c * e, -(a * f - c * d), a * e - b * d],
    ]
    # What no value can give is not a response, and then the channel is singular.
    decoder = decoder_for(xp.channel(rows).on(xp.FiniteSet(range(3))))
    expected = [[float(x / determinant) for x in row] for row in cofactors]
    for j in range(3):
        decoded = [decoder.decode(y)[j] for y in range(3)]
        assert decoded == pytest.approx(expected[j], rel=1e-7, abs=1e-7)


@given(exact_rows(2), st.sampled_from(EPSILONS))
def test_no_linear_estimate_has_less_variance_where_all_values_are_equally_frequent(
    rows: list[list[Fraction]], epsilon: Fraction
) -> None:
    assume(len(rows[0]) == 3)
    assume(rows[0] != rows[1])
    likelihood = xp.channel(rows).on(xp.FiniteSet(range(2)))
    decoder = decoder_for(likelihood)
    assert isinstance(decoder, InverseDecoder)
    channel = np.array(rows, dtype=np.float64)
    plain = np.linalg.pinv(channel.T)
    mixed = channel.mean(axis=0)
    assert ((decoder.matrix**2 @ mixed) <= (plain**2 @ mixed) * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (xp.perturbation([0, 0.5, 1], epsilon=1), "has 2 responses: 3 values cannot be told apart"),
        (xp.channel([["1/2", "1/4", "1/4"]] * 2 + [[0, 0, 1]]), "some values cannot be told apart"),
        (
            xp.laplace({"value": 1}, range=(0, 2), grid="1/2000", epsilon=50),
            "some values|expected at most",
        ),
    ],
    ids=["two responses", "equal rows", "fine grid"],
)
def test_what_tells_too_little_by_itself_is_refused_in_one_line(query: Query, reason: str) -> None:
    values = range(3) if query.kind != "laplace" else [x / 2000 for x in range(3000)]
    with pytest.raises(xp.InvalidInput, match=reason) as error:
        decoder_for(query.on(xp.FiniteSet(values)))
    assert "\n" not in str(error.value)
