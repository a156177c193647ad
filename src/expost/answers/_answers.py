"""The answers of many subjects: a table with a row per response, checked once when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from types import MappingProxyType
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost._types import Indices
from expost.answers._columns import (
    check_spelled,
    encode_column,
    encode_parsed_column,
    read_columns,
    response_position,
    take_rows,
)
from expost.answers._outcomes import ANSWERED, MISSING, OUTCOME, UNANSWERED, read_outcomes
from expost.cards import card
from expost.domains import Attributes, Box, Domain, FiniteSet, Part, join_names
from expost.errors import InvalidInput, at, expect, read_at, unknown_name
from expost.files.reading import as_list
from expost.filters import Filter
from expost.numbers import read_only
from expost.queries import About, Likelihood, Query, check_query, read_about
from expost.tally import TallyIndex
from expost.transcript import Transcript

__all__ = [
    "Answers",
    "Subject",
    "likelihoods_of",
    "no_such_query",
    "read_key",
    "read_subject",
]

#: The name of a subject: a string or an integer, as in the table.
Subject = int | str


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Answers:
    """The responses of many subjects to queries on one domain.

    Estimates and :func:`realized_losses` start from these.
    The table has a row per response, with these columns:

    - ``subject``: a string or an integer;
    - ``query``: an id;
    - ``response``: a response of that query. A string stands for the label, or if there is no such
      label for the number that it spells;
    - ``outcome``, if some queries have no response: ``answered``, ``refused`` (by the filter),
      ``declined`` (by the subject) or ``missing`` (perhaps given, and lost). Only answered rows
      have a response.

    Subjects may have answered different queries, and the same query more than once.

    All queries must be about the same value of a subject, which is in ``domain``. If "smokes" and
    "drinks" were asked over one domain of "no" and "yes", the answers "yes" and "no" would cancel
    out and the loss would be too small. Facts that are asked about separately are
    :class:`Attributes`, and queries say which of them they are about. A response about several
    attributes is a list; in a string, a JSON list.

    Args:
        domain: The domain of all queries.
        queries: The queries by their ids.
        table: A polars or pandas frame, or a mapping of columns.
        complete: False if subjects gave responses that are not in the table, for instance to other
            analysts, as it always is if one is missing. Estimates then warn that they can be
            biased, and losses that the loss of a part need not bound what that part reveals.
        filter: The filter under which the responses were given, if there was one. Estimates that a
            filter makes wrong then warn.

    Raises:
        InvalidInput: A query does not work on the domain, or a row cannot be read. The error names
            the row.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> table = {"subject": ["a", "a", "b"], "query": ["q"] * 3, "response": ["no", "yes", "no"]}
    >>> xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
    Answers(2 subjects, 3 responses)
    """

    domain: Domain
    queries: Mapping[str, Query]
    #: In the order in which they first appear in the table.
    subjects: tuple[Subject, ...]
    #: Each pair that occurs: the id of a query and the position of one of its responses.
    #:
    #: Sorted by query, then by the position of the response.
    responses: tuple[tuple[str, int], ...]
    #: For each row, its index in ``responses``. Rows are sorted by subject, stably.
    codes: Indices
    #: The first row of each subject; the last entry is the number of rows.
    starts: Indices
    #: True if these are all the responses that the subjects gave.
    complete: bool
    #: True if each of their responses has a row, even if the response itself is missing.
    all_rows: bool
    #: The filters that decided which queries were answered; None stands for unknown.
    filters: tuple[Filter | None, ...]
    #: Pairs of a subject and a query without a response, by outcome; None if they are not known.
    #:
    #: A subject may have no answers at all.
    unanswered: Mapping[str, frozenset[tuple[Subject, str]]] | None
    #: True if no subject of the study is missing.
    _all_subjects: bool

    def __init__(
        self,
        domain: Domain,
        queries: Mapping[str, Query],
        table: Any,
        *,
        complete: bool = True,
        filter: Filter | None = None,
    ) -> None:
        expect(domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
        expect(complete, bool, "True or False", "complete")
        expect(filter, Filter | None, "a filter, such as BayesianFilter(epsilon=1)", "filter")
        likelihoods = likelihoods_of(domain, queries)
        columns = read_columns(table, optional=(OUTCOME,))
        of_row, subjects = encode_parsed_column(columns["subject"], read_subject, "subject")
        query_codes, keys = encode_parsed_column(
            columns["query"], partial(read_key, likelihoods=likelihoods), "query"
        )
        rows, unanswered = np.arange(len(of_row)), None
        if OUTCOME in columns:
            outcomes = read_outcomes(columns[OUTCOME], columns["response"])
            rows = np.flatnonzero(outcomes == ANSWERED)
            unanswered = {
                outcome: frozenset(
                    (subjects[of_row[row]], keys[query_codes[row]])
                    for row in np.flatnonzero(outcomes == outcome).tolist()
                )
                for outcome in UNANSWERED
            }
            indices, of_row = np.unique(of_row[rows], return_inverse=True)
            subjects = [subjects[index] for index in indices.tolist()]
            query_codes = query_codes[rows]
        answered_column = take_rows(columns["response"], rows)
        codes_of_response, distinct_responses = encode_column(answered_column, "response", rows)

        def response_of(pair: int) -> tuple[str, int]:
            query_code, response_code = divmod(pair, len(distinct_responses))
            key, response = keys[query_code], distinct_responses[response_code]
            return key, response_position(likelihoods[key], response, f"query {key!r}")

        codes, answered_responses = encode_parsed_column(
            query_codes * len(distinct_responses) + codes_of_response, response_of, "response", rows
        )
        if (np.diff(of_row) < 0).any():
            together = np.argsort(of_row, kind="stable")
            codes, of_row = codes[together], of_row[together]
        starts = np.searchsorted(of_row, np.arange(len(subjects) + 1))
        answers = Answers.of_codes(
            domain, queries, subjects, answered_responses, codes, starts, complete=complete,
            filters=(filter,), unanswered=unanswered,
        )  # fmt: skip
        vars(self).update(vars(answers))

    @classmethod
    def of_pairs(cls, domain: Domain, pairs: Any) -> Answers:
        """Make answers from pairs of a query and a response, each from another subject."""
        checked = _pairs(pairs)
        expect(domain, Domain, "a FiniteSet, Attributes or a Box, for pairs do not say", "domain")
        check_spelled(domain, checked)
        # By identity: comparing thousands of queries with seeds of their own would take long.
        queries = {id(query): query for query, _ in checked}
        keys = {identity: str(index) for index, identity in enumerate(queries)}
        table = {
            "subject": range(len(checked)),
            "query": [keys[id(query)] for query, _ in checked],
            "response": [response for _, response in checked],
        }
        return cls(domain, {keys[identity]: query for identity, query in queries.items()}, table)

    @classmethod
    def of_transcripts(
        cls,
        transcripts: Mapping[str, Transcript],
        queries: Mapping[str, Query] | None = None,
        *,
        complete: bool = True,
    ) -> Answers:
        """Make answers from transcripts by the names of subjects, all on one domain.

        ``queries`` gives queries their ids; others go by their content ids. Subjects who were asked
        nothing are left out. The filters are those that the others name.

        >>> import expost as xp
        >>> query, values = xp.randomized_response(epsilon=1), xp.FiniteSet(["no", "yes"])
        >>> ann, bob = xp.Transcript(values).add(query, "no"), xp.Transcript(values)
        >>> Answers.of_transcripts({"ann": ann, "bob": bob})
        Answers(1 subject, 1 response)
        """
        nonempty = {name: each for name, each in transcripts.items() if len(each)}
        if not nonempty:
            raise InvalidInput("no subject has answered anything")
        domain = next(iter(nonempty.values())).domain
        for name, transcript in nonempty.items():
            if transcript.domain != domain:
                reason = "its domain differs from that of the transcripts before it"
                raise InvalidInput(reason, name)
        named = dict(queries or {})
        if named:
            likelihoods_of(domain, named)
        ids = {query.content_id: key for key, query in named.items()}
        pairs: list[tuple[str, int]] = []
        for transcript in nonempty.values():
            for exchange in transcript.exchanges:
                content = exchange.query.content_id
                if content not in ids and content in named:
                    message = "a query has the content id of another one as its name"
                    raise InvalidInput(message, "queries")
                key = ids.setdefault(content, content)
                named.setdefault(key, exchange.query)
                pairs.append((key, exchange.position))
        code_of: dict[tuple[str, int], int] = {}
        codes = np.array([code_of.setdefault(pair, len(code_of)) for pair in pairs], dtype=np.intp)
        starts = np.cumsum([0, *map(len, nonempty.values())], dtype=np.intp)
        guards = tuple(dict.fromkeys(transcript.filter for transcript in nonempty.values()))
        return cls.of_codes(
            domain, named, nonempty, code_of, codes, starts, complete=complete, filters=guards
        )

    @classmethod
    def of_codes(
        cls,
        domain: Domain,
        queries: Mapping[str, Query],
        subjects: Iterable[Subject],
        responses: Iterable[tuple[str, int]],
        codes: Indices,
        starts: Indices,
        *,
        complete: bool = True,
        filters: tuple[Filter | None, ...] = (None,),
        unanswered: Mapping[str, frozenset[tuple[Subject, str]]] | None = None,
        all_subjects: bool | None = None,
    ) -> Answers:
        """Return answers from fields of this class, which the caller has checked.

        ``responses`` may come in any order. ``complete`` says whether each response has a row;
        ``all_subjects`` is the same by default.
        """
        if not len(codes):
            raise InvalidInput("no subject has answered anything")
        rank = {key: index for index, key in enumerate(queries)}
        pairs = [(rank[key], position, key) for key, position in responses]
        order = sorted(range(len(pairs)), key=pairs.__getitem__)
        codes = np.argsort(order)[codes]
        read_only(codes, starts)
        answers = object.__new__(cls)
        vars(answers).update(
            domain=domain, queries=MappingProxyType(dict(queries)), subjects=tuple(subjects),
            responses=tuple((pairs[code][2], pairs[code][1]) for code in order), codes=codes,
            starts=starts, complete=complete and not (unanswered or {}).get(MISSING),
            all_rows=complete, filters=filters, unanswered=unanswered,
            _all_subjects=complete if all_subjects is None else all_subjects,
        )  # fmt: skip
        return answers

    def about(self, *names: str, at: int | None = None, planned: bool = False) -> Answers:
        """Return the answers about some attributes, as answers on the set of their values.

        Estimates for one attribute, or for the combinations of several, start from these. Queries
        about some of the named attributes are taken in; ``at`` is the step if one of them changes.
        On a box it is one coordinate that has categories.

        Other answers of the same subjects are left out. That is right if the choice of questions
        did not depend on responses: pass ``planned=True``. It did not if every subject was asked
        the same questions. Otherwise, as under a filter, these answers are incomplete; name all
        attributes that were asked about. Estimates stay unbiased if all subjects were asked about
        these in the same way.

        >>> import expost as xp
        >>> person = xp.Attributes(smokes=["no", "yes"], drinks=["no", "yes"])
        >>> query = xp.randomized_response(epsilon=1)
        >>> queries = {"s": query.about("smokes"), "d": query.about("drinks")}
        >>> table = {"subject": [1, 1, 2, 2], "query": ["s", "d"] * 2, "response": ["no"] * 4}
        >>> xp.Answers(person, queries, table).about("smokes")
        Answers(2 subjects, 2 responses)
        """
        part, taken = _part_of(self, names, at, planned=planned)
        rows = np.array([key in taken for key, _ in self.responses])[self.codes]
        per_subject = np.add.reduceat(rows, self.starts[:-1], dtype=np.intp)
        has_rows = per_subject > 0
        if not has_rows.any():
            raise InvalidInput(f"no subject answered about {join_names(names)}", "about")
        has_other_rows = (has_rows & (per_subject < self.exchanges)).any()
        return self._take(
            rows,
            lambda _subject, key: key in taken,
            domain=part,
            queries={key: query for key, query in self.queries.items() if key in taken},
            complete=self.all_rows and (planned or not has_other_rows or self._same_queries),
            all_subjects=self._all_subjects and bool(has_rows.all()),
        )

    def select(self, subjects: Iterable[Subject]) -> Answers:
        """Return the answers of some subjects, such as a group; other names are ignored.

        The choice must not depend on responses, except through what is public about a subject.

        >>> import expost as xp
        >>> query = xp.randomized_response(epsilon=1)
        >>> table = {"subject": ["a", "b"], "query": ["q"] * 2, "response": ["no", "yes"]}
        >>> answers = xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
        >>> answers.select(["b", "c"])
        Answers(1 subject, 1 response)
        """
        chosen = frozenset(subjects)
        is_chosen = np.array([name in chosen for name in self.subjects])
        if not is_chosen.any():
            raise InvalidInput("none of them has answered anything", "subjects")
        return self._take(
            np.repeat(is_chosen, self.exchanges), lambda subject, _key: subject in chosen
        )

    def _take(
        self, rows: NDArray[np.bool_], keeps: Callable[[Subject, str], bool], **fields: Any
    ) -> Answers:
        """Return the answers in some rows, and the unanswered queries of the same choice."""
        per_subject = np.add.reduceat(rows, self.starts[:-1], dtype=np.intp)
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        fields = {"domain": self.domain, "queries": self.queries, "complete": self.all_rows,
                  "all_subjects": self._all_subjects, **fields}  # fmt: skip
        return Answers.of_codes(
            subjects=compress(self.subjects, per_subject > 0),
            responses=[self.responses[code] for code in used.tolist()],
            codes=codes,
            starts=np.append(0, np.cumsum(per_subject[per_subject > 0])),
            filters=self.filters,
            unanswered=self.unanswered
            and {
                outcome: frozenset(pair for pair in pairs if keeps(*pair))
                for outcome, pairs in self.unanswered.items()
            },
            **fields,
        )

    @property
    def filter(self) -> Filter | None:
        """The filter that all subjects have; None if none is known, or if they differ."""
        return self.filters[0] if len(self.filters) == 1 else None

    @property
    def by_responses(self) -> bool:
        """True if a known filter looks at responses."""
        return any(guard is not None and guard.by_responses for guard in self.filters)

    def evenly(self, query: str | None = None) -> bool:
        """Return whether all were asked alike, so that estimates need not care who was asked what.

        All subjects of the study gave as many responses to each query, and none is known to have
        left one unanswered; or of ``query`` only, by default of all. Whatever decided that did not
        look at responses, or hardly ever (docs/theory/estimates.md).
        """
        if not self._all_subjects or any((self.count_unanswered(query) or {}).values()):
            return False
        if query is None:
            return self._same_queries
        is_query = np.array([key == query for key, _ in self.responses])
        times = np.add.reduceat(is_query[self.codes], self.starts[:-1], dtype=np.intp)
        return bool(times[0] > 0 and (times == times[0]).all())

    @property
    def _same_queries(self) -> bool:
        """True if all subjects were asked the same queries, the same number of times each."""
        tallies = TallyIndex.of_rows(self.query_of_row, self.starts)
        return bool((tallies.of_subject == tallies.of_subject[0]).all())

    @property
    def query_of_row(self) -> Indices:
        """For each row, the index of its query in ``queries``."""
        index_of_query = {key: index for index, key in enumerate(self.queries)}
        return np.array([index_of_query[key] for key, _ in self.responses])[self.codes]

    def __len__(self) -> int:
        return len(self.subjects)

    def __repr__(self) -> str:
        size = f"{format_count(len(self), 'subject')}, {format_count(len(self.codes), 'response')}"
        return f"Answers({size})" if self.complete else f"Answers({size}, incomplete)"

    def _repr_html_(self) -> str:
        """Return a row per query, with how many responses it got."""
        counts = np.bincount(self.query_of_row, minlength=len(self.queries)).tolist()
        facts: dict[str, object] = {
            "domain": self.domain,
            "subjects": f"{len(self):,}",
            "responses": f"{len(self.codes):,}",
            "complete": "yes" if self.complete else "no",
            "filter": ", or ".join(
                "not known" if guard is None else f"{guard.kind}, budget {guard.limit}"
                for guard in self.filters[:3]
            ),
        }
        return card(
            "Answers",
            facts,
            columns=("id", "query", "responses"),
            items=list(zip(self.queries.items(), counts, strict=True)),
            row=lambda _index, query_and_count: (*query_and_count[0], f"{query_and_count[1]:,}"),
        )

    @property
    def exchanges(self) -> NDArray[np.intp]:
        """The number of responses of each subject, in the order of ``subjects``."""
        return np.diff(self.starts)

    def count_unanswered(self, query: str | None = None) -> dict[str, int] | None:
        """Count by outcome the subjects who left a query unanswered, by default any of them.

        Return None if that is not known.
        """
        if self.unanswered is None:
            return None
        return {
            outcome: len({subject for subject, key in pairs if query in (None, key)})
            for outcome, pairs in self.unanswered.items()
        }

    def transcript(self, subject: Subject) -> Transcript:
        """Return the transcript of one subject, with its exchanges in the order of the table."""
        index = self._index_of_subject.get(subject)
        if index is None:
            raise InvalidInput(f"no subject {subject!r} in this table", "subject")
        return self.transcript_of(self.codes[self.starts[index] : self.starts[index + 1]])

    def tallies(self) -> TallyIndex:
        """Count the responses of each subject, by their indices in ``responses``."""
        return TallyIndex.of_rows(self.codes, self.starts)

    @cached_property
    def _index_of_subject(self) -> dict[Subject, int]:
        return {subject: index for index, subject in enumerate(self.subjects)}

    def transcript_of(self, codes: Indices) -> Transcript:
        """Return the transcript of a subject, from indices into ``responses``."""
        transcript = Transcript(self.domain)
        for code in codes.tolist():
            key, position = self.responses[code]
            transcript = transcript.add_position(self.queries[key], position)
        return transcript


def likelihoods_of(domain: Domain, queries: Mapping[str, Query]) -> dict[str, Likelihood[Any]]:
    """Return the likelihood of each query on a domain, by its id; an error names the id."""
    with at("queries"):
        expect(queries, Mapping, "queries by their ids")
        if not queries:
            raise InvalidInput("must not be empty")
        result = {}
        for key, query in queries.items():
            expect(key, str, "a string")
            with at(key):
                check_query(query)
                result[key] = query.on(domain)
        return result


def _pairs(rows: Any) -> list[tuple[Query, Any]]:
    with at("answers"):
        try:
            pairs = [(query, response) for query, response in as_list(rows)]
            for query, _ in pairs:
                check_query(query)
        except (InvalidInput, TypeError, ValueError):
            message = "must be Answers(domain, queries, table), or pairs of a query and a response"
            raise InvalidInput(message) from None
        if not pairs:
            raise InvalidInput("must not be empty")
        return pairs


def read_subject(name: Any) -> Subject:
    """Return the name of a subject in a table."""
    if isinstance(name, str) and name:
        return str(name)
    if isinstance(name, (int, np.integer)) or (isinstance(name, float) and name.is_integer()):
        return int(name)
    raise InvalidInput("must be a non-empty string or an integer")


def read_key(key: Any, likelihoods: Mapping[str, Any]) -> str:
    """Return the id of a query in a table."""
    # Ids are texts, as in a file; a number in a column stands for the text that spells it.
    name = str(key) if isinstance(key, (str, int, np.integer)) else ""
    if name not in likelihoods:
        raise no_such_query(name, likelihoods)
    return name


def no_such_query(name: str, queries: Mapping[str, Any]) -> InvalidInput:
    """Return the error about an id that no query has."""
    return InvalidInput(unknown_name("query", name, queries))


def _part_of(answers: Answers, about: Any, step: Any, *, planned: bool) -> tuple[Part, set[str]]:
    """Return the part that some attributes are, and the queries about it."""
    domain, (names, step) = answers.domain, read_about(about, step)
    match domain:
        case FiniteSet():
            raise InvalidInput("a finite set has no attributes; leave it out", "about")
        case Attributes():
            part = read_at("about", domain.part, names)
            touched = _touched_on_attributes(domain, names, step, answers)
        case Box():
            part = read_at("about", domain.part, names)
            touched = _touched_on_box(domain, names, step, answers)
        case _:
            assert_never(domain)
    for key, other_parts in touched.items():
        if other_parts and not planned:
            raise InvalidInput(
                f"is also about {other_parts}pass planned=True (--planned) to leave it out, if the "
                "choice of questions did not depend on responses",
                f"queries.{key}",
            )
    return part, {key for key, other_parts in touched.items() if not other_parts}


#: For each query that is about some of a part, what else the query is about.
_Touched = dict[str, str]


def _touched_on_attributes(
    domain: Attributes, names: tuple[str, ...], step: int | None, answers: Answers
) -> _Touched:
    wanted = set(domain.variables(names, step))
    touched = {}
    for key in dict.fromkeys(key for key, _ in answers.responses):
        variables = set(answers.queries[key].on(domain).variables)
        if variables & wanted:
            other_names = [name for name, _ in sorted(variables - wanted)]
            touched[key] = f"{join_names(other_names)}; name it as well, or " if other_names else ""
    return touched


def _touched_on_box(
    domain: Box, names: tuple[str, ...], step: int | None, answers: Answers
) -> _Touched:
    if step is not None:
        raise InvalidInput("the coordinates of a box do not change; leave it out", "at")
    assert domain.names is not None, "a part has a name"
    columns = domain.column_slices[domain.names.index(names[0])]
    touched = {}
    for key, position in answers.responses:
        query = answers.queries[key]
        if isinstance(query, About):
            if query.names == names:
                touched[key] = ""
        elif any(query.on(domain).term(position).weights[j] for j in columns):
            touched[key] = f"{names[0]}, as a part of a score; "
    return touched
