"""What is given in another way than it is needed: the message shows the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

BITS = xp.FiniteSet([0, 1])
HABITS = xp.FiniteSet(["never", "often"])
BIT = xp.perturbation([0, 1], range=(0, 1), epsilon=1)
GUARD = xp.BayesianFilter(epsilon=1)
some: Any = xp


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xp.FiniteSet("never"), 'must be a list of values, such as ["no", "yes"]'),
        (
            lambda: xp.Box({"age": (10, 100)}),
            "named sides are arguments: Box(age=(10, 100)), or Box(**sides)",
        ),
        (
            lambda: some.linear({"age": 1}, range=3, epsilon=1),
            "range: must be two ends, the lower one first, such as (0, 12)",
        ),
        (
            lambda: some.linear(2, epsilon=1),
            'weights: must be weights by name, such as {"age": 2}, or a list',
        ),
        (
            lambda: xp.randomized_response(epsilon="1,5"),
            "epsilon: '1,5' is not a number; write 1.5",
        ),
        (
            lambda: xp.estimation.estimate_mean([1, 0], BIT, domain=BITS, confidence=95),
            "confidence: must be between 0 and 1, not 95; write 0.95",
        ),
        (
            lambda: some.Session(BITS, 1, filter=GUARD, source=38),
            "source: must be a source of randomness, such as InsecureSource(38), not int",
        ),
        (
            lambda: xp.estimation.estimate_distribution(
                [(xp.randomized_response(epsilon=1), "Never")], domain=HABITS
            ),
            "row 1: response: 'Never' is not a response of this randomized_response; "
            "it has 'never', 'often'",
        ),
        (
            lambda: xp.estimation.estimate_mean([1, 0, "1"], BIT, domain=BITS),
            "row 3: response: '1' is not a response of this perturbation; it has 0, 1",
        ),
    ],
)
def test_a_slip_in_python_is_answered_with_what_is_needed(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("no;yes", "--values: only one value; separate values with commas, as in no,yes"),
        ("10..0", "--values: '10..0': the lower end comes first, as in 0..10"),
        ("no,no", "--values: 'no' appears twice"),
    ],
)
def test_a_slip_in_a_list_of_values_is_answered_with_what_is_needed(
    run: Run, tmp_path: Path, values: str, reason: str
) -> None:
    file = tmp_path / "ann.json"
    told = run("new", file, "--values", values, "--budget", 1)
    assert told == (2, "", f"expost: {reason}\n")
    assert not file.exists()


def test_a_secret_that_gives_a_name_twice_is_told_without_it(run: Run, tmp_path: Path) -> None:
    file, query, secret = (tmp_path / name for name in ("ann.json", "query.json", "secret.json"))
    xp.Transcript(xp.Box(hours=(0, 99)), GUARD).save(file)
    xp.linear({"hours": 1}, epsilon="0.5").save(query)
    secret.write_text('{"hours": 77, "hours": 78}')
    secret.chmod(0o600)
    told = run("ask", file, "--query", query, "--secret", secret)
    reason = "a name appears twice (not shown)"
    assert told == (2, "", f"expost: {secret}: {reason}\n")


@pytest.mark.parametrize("command", ["plot", "estimate", "loss", "certify"])
def test_what_replaces_a_file_says_so(run: Run, command: str) -> None:
    assert "is replaced" in " ".join(run(command, "--help")[1].split())
