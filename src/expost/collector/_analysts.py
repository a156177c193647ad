"""Endpoints of analysts: rounds, groups, status and estimates."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np

from expost.collector import _documents as documents
from expost.collector._endpoints import Answer, Call, Endpoint
from expost.collector._estimates import EstimateRequest
from expost.collector._groups import check_new_group
from expost.collector._jobs import Work, estimate_work
from expost.collector._problems import RequestProblem
from expost.collector._service import Service
from expost.collector._state import RoundRecord
from expost.collector._tokens import ANALYST, AUDITOR, BY_NAME, REGISTRAR
from expost.errors import InvalidInput, at
from expost.files.reading import parse
from expost.ledger import Round
from expost.ledger._requests import DEVICE
from expost.queries import Query, query_from_json

__all__ = ["ENDPOINTS"]

_BINS = 10
_SMALL = "Too few subjects, or they are named without the scope asks-by-name."
_UNREADABLE = "The query or an option cannot be used."


def _read_query(service: Service, document: bytes) -> Query:
    """Return the query of a request: a name of the study, or a document."""
    with at("query"):
        try:
            tree = parse(document.decode())
        except (RecursionError, UnicodeDecodeError):
            raise InvalidInput("is no JSON, or nested too deeply") from None
        if type(tree) is str:
            queries = service.reader.queries
            if tree not in queries:
                raise InvalidInput("is the name of no query of this study")
            return queries[tree]
        return query_from_json(tree)


async def ask(call: Call) -> Answer:
    body: documents.RoundRequest = call.body
    service = call.service
    subjects = await service.members(call.holder, body.group, body.subjects)
    query = await asyncio.to_thread(_read_query, service, bytes(body.query))
    if body.dry_run:
        return Answer(await asyncio.to_thread(_forecast, service, query, subjects))
    if body.key is None:
        raise RequestProblem(400, "invalid-body", "key: is missing; only dry runs have none")
    key = body.key
    record = RoundRecord(query.content_id, body.group, body.subjects is not None)

    def reserve() -> documents.RoundCounts:
        # Refuse what cannot be asked before the key is recorded.
        service.writer.decide(query, subjects[:1])
        service.state.record_round(key, record)
        outcomes = service.writer.reserve(query, subjects, key=key)
        service.rounds_made += 1
        handed = [outcome.subject for outcome in outcomes if outcome.outcome == "reserved"]
        service.call_in_loop(service.wake, handed)
        counts = Counter(outcome.outcome for outcome in outcomes)
        return documents.RoundCounts(
            key,
            _name_of(service, query),
            record.group,
            len(outcomes),
            counts["recorded"],
            counts["declined"],
            counts["refused"],
            counts["reserved"],
            sum(counts[outcome] for outcome in _LATER),
        )

    return Answer(await asyncio.to_thread(reserve))


def _name_of(service: Service, query: Query) -> str:
    """Return the name of a query of the study."""
    return next(name for name, other in service.writer.queries.items() if other == query)


# Outcomes after which the round has to be repeated to ask a subject.
_LATER = ("waiting", "suspended", "unconfirmed", "dropped")


def _forecast(service: Service, query: Query, subjects: list[int | str]) -> documents.DryRun:
    decisions = service.reader.decide(query, subjects)
    status = service.reader.status(subjects)
    free = (np.array(status.states) == "active") & ~status.reserved
    accepted, undecided = int(decisions.accepted.sum()), int(decisions.undecided.sum())
    busy = len(subjects) - int(free.sum())
    refused = len(subjects) - accepted - undecided - busy
    return documents.DryRun(len(subjects), accepted, refused, undecided, busy)


async def rounds(call: Call) -> Answer:
    found = await asyncio.to_thread(_rounds, call)
    return Answer(documents.Rounds(found))


async def one_round(call: Call) -> Answer:
    found = await asyncio.to_thread(_rounds, call)
    for counts in found:
        if counts.key == call.path["key"]:
            return Answer(counts)
    raise RequestProblem(404, "unknown-round", "there is no such round")


def _rounds(call: Call) -> list[documents.RoundCounts]:
    """Return the rounds that a token may see: those by name only if it asks by name."""
    service = call.service
    counted: dict[str | None, Round] = {done.key: done for done in service.counted_rounds()}
    by_name = BY_NAME in call.holder.scopes or AUDITOR in call.holder.scopes
    result = []
    for key, done in counted.items():
        if key is None:
            continue
        record = service.state.rounds.get(key, RoundRecord("", None, by_name=True))
        if record.by_name and not by_name:
            continue
        asked = done.answered + done.refused + done.declined + done.waiting
        result.append(
            documents.RoundCounts(
                key,
                done.query,
                record.group,
                asked,
                done.answered,
                done.declined,
                done.refused,
                done.waiting,
            )
        )
    return result


async def groups(call: Call) -> Answer:
    named = call.service.state.groups
    entries = [documents.NamedGroup(name, len(members)) for name, members in named.items()]
    return Answer(documents.GroupList(entries))


async def name_group(call: Call) -> Answer:
    body: documents.GroupMembers = call.body
    service, name = call.service, call.path["name"]
    everybody = await asyncio.to_thread(service.reader.subjects_of_kind, DEVICE)
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise RequestProblem(422, "invalid-input", "a name has 1 to 200 printable characters")

    def record() -> documents.NamedGroup:
        with service.state.lock:
            named, smallest = service.state.groups, service.settings.smallest_group
            check_new_group(name, body.subjects, named, everybody, smallest)
            if name not in named:
                service.state.name_group(name, body.subjects)
            return documents.NamedGroup(name, len(named[name]))

    return Answer(await asyncio.to_thread(record))


async def status(call: Call) -> Answer:
    service = call.service
    subjects = await service.members(call.holder, call.parameters.group)

    def read() -> documents.StatusCounts:
        tip = service.reader.tip
        state = service.reader.status(subjects)
        budget = float(service.reader.filter.budget.nearest)
        active = np.array(state.states) == "active"
        used = np.clip(1 - state.remaining[active] / budget, 0, 1)
        bins = np.minimum((used * _BINS).astype(np.int64), _BINS - 1)
        return documents.StatusCounts(
            tip.commit_number,
            tip.root.hex(),
            len(state),
            int(state.exchanges.sum()),
            dict(Counter(state.states)),
            int(state.reserved.sum()),
            int((state.remaining[active] <= 0).sum()),
            np.bincount(bins, minlength=_BINS).tolist(),
            state.ended,
        )

    return Answer(await asyncio.to_thread(read))


async def estimates(call: Call) -> Answer:
    parameters: documents.EstimateParameters = call.parameters
    service = call.service
    subjects = await service.members(call.holder, parameters.group)
    request = EstimateRequest(
        None if parameters.group is None else frozenset(subjects),
        parameters.mean,
        parameters.share,
        parameters.frequencies,
        parameters.likelihood,
        None if parameters.about is None else tuple(parameters.about.split(",")),
        parameters.step,
        parameters.confidence,
    )
    return await job_answer(call, request, estimate_work(request))


async def job_answer(call: Call, key: object, work: Work) -> Answer:
    """Return the result of a job, or its progress."""
    service = call.service
    tip = await asyncio.to_thread(lambda: service.reader.tip)
    result = await service.jobs.result(
        key, work, call.holder.name, tip.root.hex(), call.parameters.wait
    )
    if isinstance(result, tuple):
        return Answer(documents.JobProgress(*result), 202, headers={"Retry-After": "1"})
    return Answer(result)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/rounds",
        ask,
        "Ask a query of everybody, a group, or subjects by name; a dry run only counts.",
        (ANALYST, BY_NAME),
        "How many accept, refuse or wait, to the analyst. Acceptance is a function of transcripts, "
        "within epsilon; waiting and declined are not covered.",
        body=documents.RoundRequest,
        answers={200: documents.RoundCounts | documents.DryRun},
        problems={
            403: _SMALL,
            404: "No such group.",
            409: "The key was used for another query or other subjects.",
            422: _UNREADABLE,
        },
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/rounds",
        rounds,
        "Count what became of every round.",
        (ANALYST, BY_NAME, AUDITOR),
        "Counts of rounds of groups; rounds by name only to those who ask by name, and auditors.",
        answers={200: documents.Rounds},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/rounds/{key}",
        one_round,
        "Count what became of a round.",
        (ANALYST, BY_NAME, AUDITOR),
        "As all rounds.",
        answers={200: documents.RoundCounts},
        problems={404: "No such round, or it is by name."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/groups",
        groups,
        "List the groups.",
        (ANALYST, BY_NAME, REGISTRAR),
        "Names and sizes of groups.",
        answers={200: documents.GroupList},
    ),
    Endpoint(
        "PUT",
        "/v1/groups/{name}",
        name_group,
        "Name a group, permanently.",
        (REGISTRAR,),
        "The size of the group.",
        body=documents.GroupMembers,
        answers={200: documents.NamedGroup},
        problems={
            409: "A group of this name has other members.",
            422: "A member is unknown, or the group or a difference of groups is too small.",
        },
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/status",
        status,
        "Count answers, states and used budgets of everybody or a group.",
        (ANALYST, BY_NAME, AUDITOR),
        "Counts and a histogram of used budgets, never a subject. Losses are functions of "
        "transcripts; states and reservations are not covered.",
        parameters=documents.GroupParameters,
        answers={200: documents.StatusCounts},
        problems={403: _SMALL, 404: "No such group."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/estimates",
        estimates,
        "Estimate shares, means or a distribution; repeat the request until it is done.",
        (ANALYST, BY_NAME),
        "Estimates with intervals, functions of the transcripts of the group.",
        parameters=documents.EstimateParameters,
        answers={200: documents.Document, 202: documents.JobProgress},
        problems={403: _SMALL, 404: "No such group.", 422: _UNREADABLE},
        logged=True,
    ),
)
