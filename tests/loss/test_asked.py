"""What was asked is a transcript, a session, an odometer or a replay: all lead to the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

import expost as xp
from expost.report import compare, explain

QUERY = xp.randomized_response(epsilon="0.5")
FILTER = xp.BayesianFilter(epsilon=1)
SESSION = xp.Session(
    xp.FiniteSet(["no", "yes"]), "yes", filter=FILTER, source=xp.sampling.InsecureSource(1)
)
for _ in range(2):
    SESSION.ask(QUERY)
TRANSCRIPT = SESSION.transcript
GIVEN = [TRANSCRIPT, SESSION, SESSION.odometer, xp.replay(TRANSCRIPT)]
EACH = pytest.mark.parametrize("given", GIVEN, ids=lambda given: type(given).__name__)


@EACH
def test_everything_takes_whatever_has_a_transcript(given: object) -> None:
    assert xp.realized_loss(given) == xp.realized_loss(TRANSCRIPT)
    assert xp.replay(given).tree() == xp.replay(TRANSCRIPT).tree()
    assert explain(given).tree() == explain(xp.replay(TRANSCRIPT)).tree()
    assert compare(given).tree() == compare(xp.Odometer(TRANSCRIPT)).tree()
    assert FILTER.decide(given, QUERY).tree() == FILTER.decide(SESSION.odometer, QUERY).tree()
    assert FILTER.count_repeats(given, QUERY) == FILTER.count_repeats(SESSION.odometer, QUERY)


@pytest.mark.parametrize("given", ["t.json", None, FILTER, TRANSCRIPT.tally])
def test_anything_else_is_one_clear_line(given: object) -> None:
    for attempt in (
        xp.realized_loss,
        xp.replay,
        explain,
        compare,
        lambda x: FILTER.decide(x, QUERY),
    ):
        with pytest.raises(
            xp.InvalidInput, match=r"^must be a transcript, a session or an odometer"
        ):
            attempt(given)


def test_a_filter_decides_on_a_transcript_before_anything_else_was_imported() -> None:
    program = (
        "import expost as xp; t = xp.Transcript(xp.FiniteSet(['no', 'yes']));"
        "print(xp.BayesianFilter(epsilon=1).decide(t, xp.randomized_response(epsilon=1)).accepted)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n"
