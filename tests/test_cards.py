"""What notebooks show: small tables, escaped, without searches and without the secret."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest

import expost as xp
from expost.cards import card
from expost.loss._odometer import peak_text
from expost.report._explanation import explanation_sentences

SECRET = "<script>secret</script>"
DOMAIN = xp.FiniteSet(["a & b", "<i>", SECRET])
BLIND = xp.channel([["1/2", "1/2"]] * 3, responses=["<b>x</b>", "y"])


class Cells(HTMLParser):
    """The texts of all cells, in order; tags must be closed in the order they were opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("td", "th"):
            self.texts[-1] += data


def cells(shown: Any) -> list[str]:
    parsed = Cells(shown._repr_html_())
    assert parsed.tags <= {"table", "caption", "b", "tr", "td", "th"}
    return parsed.texts


@pytest.fixture
def session() -> xp.Session:
    guard = xp.BayesianFilter(epsilon=2)
    subject = xp.Session(DOMAIN, SECRET, filter=guard, source=xp.sampling.InsecureSource(1))
    for _ in range(3):
        subject.ask(BLIND)
    return subject


def test_a_transcript(session: xp.Session) -> None:
    texts = cells(session.transcript)
    assert texts[:6] == [
        "domain", "FiniteSet(3 values)", "filter", "bayesian, budget 2", "exchanges", "3",
    ]  # fmt: skip
    assert texts[6:12] == ["", "query", "response", "1", repr(BLIND), texts[11]]
    assert set(texts[11::3]) <= {"<b>x</b>", "y"}


def test_a_session_does_not_show_its_value(session: xp.Session, tmp_path: Path) -> None:
    session.transcript.save(tmp_path / "t.json")
    filed = xp.FileSession(tmp_path / "t.json", SECRET)
    for subject in (session, filed):
        texts = cells(subject)
        facts = dict(zip(texts[::2], texts[1::2], strict=True))
        assert facts["value"] == "(not shown)"
        assert facts["answered"] == "3"
        assert facts["realized loss"] == "0"
        assert facts["remaining"] == "2"
        assert "secret" not in subject._repr_html_()


def test_a_session_that_respected_its_budget_shows_no_peak_above_it() -> None:
    box, guard = xp.Box([(-1, 1)] * 3), xp.BayesianFilter(epsilon=1)
    noise, effort = xp.sampling.InsecureSource(0), xp.solver.Effort(gap=0.5)
    session = xp.Session(box, [0.0] * 3, filter=guard, source=noise, effort=effort)
    choice = Random(0)
    for _ in range(30):
        weights = [choice.choice([-2, -1, 1, 2]) for _ in range(3)]
        with suppress(xp.BudgetExceeded):
            session.ask(xp.linear(weights, range=(-6, 6), epsilon="0.3"))
    again = xp.Session.resume(session.transcript, [0.0] * 3, effort=effort)
    assert session.odometer.peak.lower <= 1 < session.odometer.peak.upper
    assert again.odometer.peak.upper > 1
    texts = cells(session)
    assert texts[texts.index("at its peak") + 1] == "1"
    # Who goes on does not know whether all before was accepted.
    texts = cells(again)
    lower, upper = texts[texts.index("at its peak") + 1].split(" to ")
    assert float(lower) <= 1 < float(upper)


def test_a_budget_with_a_delta_is_shown_with_it() -> None:
    guard = xp.ApproximateFilter(4, "1e-6", xp.filters.Sums())
    transcript = xp.Transcript(DOMAIN, guard)
    assert cells(transcript)[3] == "approximate, budget 4 at delta 1e-06"
    assert "approximate, budget 4 at delta 1e-06" in cells(xp.Session.resume(transcript, "<i>"))
    decision = guard.decide(xp.Odometer(transcript), xp.randomized_response(epsilon=1))
    assert cells(decision)[2:4] == ["cost at worst", "1"]


def test_an_odometer_and_a_decision_and_an_enclosure(session: xp.Session) -> None:
    query = xp.randomized_response(epsilon="0.5")
    odometer = session.odometer.add(query, "<i>")
    texts = cells(odometer)
    assert texts[:6] == ["exchanges", "4", "sum of epsilons", "0.5", "realized loss", "0.5"]
    assert texts[-3:] == ["4", "<i>", "0.5"]
    decision = xp.BayesianFilter(epsilon="0.7").decide(odometer, query)
    assert cells(decision) == [
        "outcome", "refused", "loss at worst", "1", "worst response", "<i>", "budget", "0.7",
    ]  # fmt: skip
    assert cells(xp.numbers.Enclosure(0.25, 0.5))[:4] == ["lower", "0.25", "upper", "0.5"]
    dust = xp.numbers.Enclosure(0.9999999999995579, 0.9999999999995917)
    assert cells(dust)[:4] == ["lower", "1", "upper", "1"]


def test_on_a_box_nothing_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    box, guard = xp.Box(x=(0, 1)), xp.BayesianFilter(epsilon=2)
    query = xp.linear({"x": 1}, epsilon="0.5")
    session = xp.Session(box, {"x": 0.25}, filter=guard)
    session.ask(query)

    def search(*arguments: Any) -> xp.numbers.Enclosure:
        raise AssertionError("a table is no reason to search")

    with monkeypatch.context() as patch:
        patch.setattr("expost.loss._on_box.spread", search)
        assert "realized loss" not in cells(session)
        assert "realized loss" not in cells(session.odometer)
        assert "0.25" not in session._repr_html_()
        assert cells(session.transcript)[1] == "Box(x=[0, 1])"
        assert cells(session.decide(query))[1] == "accepted"
    assert session.loss.upper <= 0.5
    assert "realized loss" in cells(session)
    assert len(session.odometer.history) == 2
    assert "loss after it" in cells(session.odometer)


def test_long_tables_show_their_ends_and_long_texts_their_beginning() -> None:
    def numbers(count: int) -> list[str]:
        html = card("t", {}, columns=("", "x"), items=range(count), row=lambda i, x: (i, x * x))
        return Cells(html).texts[2:]

    assert numbers(11)[::2] == [str(i) for i in range(1, 12)]
    assert numbers(1000)[::2] == [*"12345", "…", "996", "997", "998", "999", "1000"]
    assert numbers(1000)[11] == "990 more"
    assert len(Cells(card("t", {"x": "y" * 1000})).texts[1]) == 161
    assert Cells(card("t", {}, columns=("", "x"), items=(), row=lambda i, x: (i, x))).texts == []


def test_what_cancels_out_is_shown_as_zero_everywhere() -> None:
    query = xp.randomized_response(epsilon="0.7")
    start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=2))
    transcript = start.add(query, "yes").add(query, "no")
    odometer = xp.Odometer(transcript)
    assert 0 < odometer.loss.upper < 1e-14  # or this test shows nothing
    texts = cells(odometer)
    assert texts[texts.index("realized loss") + 1] == texts[-1] == "0"
    assert cells(odometer.loss) == [
        "lower", "0", "upper", "below 1e-09", "width", "below 1e-09",
    ]  # fmt: skip
    session = xp.Session.resume(transcript, "yes")
    assert session.loss == xp.numbers.Enclosure(0.0, 0.0)
    assert cells(session)[-5:-4] == ["0"]
    assert "loss is 0 and" in str(
        xp.BudgetExceeded(session.decide(query.with_epsilon(Fraction(9))))
    )
    told = " ".join(explanation_sentences(xp.report.explain(transcript)))
    assert "0 of it, 0 %, is used now" in told


def test_what_is_certainly_more_than_zero_is_never_shown_as_zero() -> None:
    query = xp.randomized_response(epsilon="1e-12")
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes"))
    texts = cells(odometer)
    assert texts[texts.index("realized loss") + 1] == texts[-1] == "1e-12"


def test_domains_and_filters_and_answers() -> None:
    assert cells(DOMAIN) == ["values", "3", "", "value", "1", "a & b", "2", "<i>", "3", SECRET]
    points = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "sex"])
    assert cells(points)[2:] == ["", "age", "sex", "1", "34", "0", "2", "52", "1"]
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    assert cells(box)[4:] == ["age", "[10, 100]", "sex", "integers[0, 1]"]
    person = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    assert cells(person)[5:8] == ["region", "2 values", "n, s"]
    assert cells(xp.BayesianFilter(ratio="9/4")) == ["budget", "ln(9/4)"]
    guard = xp.filters.CompositionFilter(1, "1e-6", xp.filters.Renyi(5))
    assert cells(guard)[2:] == ["delta", "0.000001", "rule", "Renyi(order=5)"]
    table = {"subject": [1, 1, 2], "query": ["q", "r", "q"], "response": ["y", "y", "y"]}
    answers = xp.Answers(DOMAIN, {"q": BLIND, "r": BLIND}, table, filter=guard)
    texts = cells(answers)
    assert texts[texts.index("subjects") + 1 : texts.index("subjects") + 4] == [
        "2",
        "responses",
        "3",
    ]
    assert texts[-6:] == ["q", repr(BLIND), "2", "r", repr(BLIND), "1"]


def test_a_domain_lists_its_first_values_and_counts_the_rest() -> None:
    few = xp.FiniteSet(["no", "y" * 60])
    assert repr(few) == f"FiniteSet(2 values: 'no', '{'y' * 39}…)"
    assert str(few) == "FiniteSet(2 values)"
    many = xp.FiniteSet(range(1000))
    assert repr(many) == "FiniteSet(1000 values: 0, 1, 2, 3, 4, 5, 6, 7 and 992 more)"


def test_an_explanation_is_what_the_command_line_prints(session: xp.Session) -> None:
    query = xp.randomized_response(epsilon="0.5")
    transcript = xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=20))
    for _ in range(20):
        transcript = transcript.add(query, "<i>")
    found = xp.report.explain(transcript)
    assert repr(found) == "\n".join(explanation_sentences(found))
    html = found._repr_html_()
    parsed = Cells(html)
    assert parsed.tags <= {"table", "caption", "b", "tr", "td", "th", "p"}
    assert parsed.texts[2:6] == ["answered", "20", "not shown", "10 in between"]
    assert parsed.texts[-5:] == ["20.", "the value itself, at epsilon 0.5", "<i>", "10", "up"]
    assert "<p>All of these responses together reveal at most 10 nats;" in html
    assert "likely for &lt;i&gt; as for" in html


def test_a_peak_that_may_be_no_more_than_the_loss_is_at_most_that() -> None:
    enclosure = xp.numbers.Enclosure
    loss = enclosure(0.9965, 0.9966)
    assert peak_text(enclosure(0.9965, 1.0), loss) == "at most 1"
    assert peak_text(enclosure(0.9967, 1.0), loss) == "1"
    assert peak_text(loss, loss) == "0.9966"
