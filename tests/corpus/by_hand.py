"""Cases that chance would not find: ties, what is impossible or too long, and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corpus.cases import Case, Command
from support.random_documents import RULES, Tree, as_text

__all__ = ["cases_by_hand"]

_FILE, _QUERY, _SECRET = "subject.json", "query.json", "secret.json"
_LOSS: Command = ("expost", "loss", _FILE)
_DECIDE: Command = ("expost", "decide", _FILE, "--query", _QUERY)
_ASK: Command = ("expost", "ask", _FILE, "--query", _QUERY, "--secret", _SECRET)
_EXPLAIN: Command = ("expost", "explain", _FILE)
_CERTIFY: Command = ("expost", "certify", _FILE, "-o", "proof.json")
_VERIFY: Command = ("expost", "verify", _FILE, "proof.json")
_CHECKER: Command = ("verify.py", _FILE, "proof.json")
_COMPARE: Command = ("expost", "compare", _FILE)
_ANSWERS = {"values": ["no", "yes"]}
_BODY = {"box": {"age": [10, 100], "sex": {"integers": [0, 1]}, "pressure": [50, 200]}}
_HEART = {
    "kind": "logistic",
    "weights": {"age": -0.059, "sex": -1.456, "pressure": -0.0134},
    "intercept": 6.177,
    "epsilon": "1",
}
_SLEEP = {
    "kind": "linear",
    "weights": {"age": 0.0855, "sex": 0.4617, "pressure": -0.07},
    "intercept": 12.323,
    "range": [0, 12],
    "clip": True,
    "epsilon": "1",
}


def cases_by_hand() -> Iterator[Case]:
    """All of them, in order."""
    yield from _ties()
    yield from _at_the_edge()
    yield from _composed()
    yield from _on_a_box()
    yield from _asked()
    yield from _proofs()
    yield from _commands()
    yield from _bad_transcripts()
    yield from _bad_queries()
    yield from _bad_tables()


def _tree(domain: Any, exchanges: list[tuple[Tree, Any]], guard: Any = None) -> Tree:
    tree = {"version": 1, "domain": domain}
    if guard is not None:
        tree["filter"] = guard
    steps = [{"query": query, "response": response} for query, response in exchanges]
    return {**tree, "exchanges": steps}


def _budget(kind: str, epsilon: str) -> Tree:
    return {"kind": kind, "epsilon": epsilon}


def _randomized(epsilon: str) -> Tree:
    return {"kind": "randomized_response", "epsilon": epsilon}


def _case(name: str, tree: Any, *commands: Command, query: Any = None, **files: Any) -> Case:
    texts = {_FILE: tree if isinstance(tree, str) else as_text(tree)}
    if query is not None:
        texts[_QUERY] = query if isinstance(query, str) else as_text(query)
    texts |= {name.replace("_", "."): text for name, text in files.items()}
    on_box = isinstance(tree, dict) and "box" in tree["domain"]
    return Case(name, texts, commands, on_box=on_box)


def _ties() -> Iterator[Case]:
    """Budgets that are met exactly, and by a hair not."""
    tenth = _randomized("0.1")
    for kind in ("basic", "simplified", "bayesian"):
        for budget in ("0.3", "0.2999999999", "0.3000000001"):
            tree = _tree(_ANSWERS, [(tenth, "no")] * 2, _budget(kind, budget))
            commands = (_DECIDE, (*_DECIDE, "--json"), _LOSS)
            yield _case(f"tie of {kind} at {budget}", tree, *commands, query=tenth)
    powers = []
    for i in range(1, 6):
        ones = [4 * 10**i + 2 * x**i for x in range(11)]
        rows = [[f"{10 ** (i + 1) - p}/{10 ** (i + 1)}", f"{p}/{10 ** (i + 1)}"] for p in ones]
        powers.append({"kind": "channel", "responses": [0, 1], "probabilities": rows})
    running = list(zip(powers, [1, 0, 1, 1], strict=False))
    for count in range(5):
        for kind in ("simplified", "bayesian"):
            guard = {"kind": kind, "ratio": "9/4"}
            tree = _tree({"values": list(range(11))}, running[:count], guard)
            name = f"example 3 of the paper after {count}, {kind}"
            proved = ((*_LOSS, "--json"), (*_DECIDE, "--json"), _CERTIFY, _VERIFY, _CHECKER)
            yield _case(name, tree, *proved, query=powers[count])


def _at_the_edge() -> Iterator[Case]:
    """Nothing asked, one value, infinite losses, what nobody can have answered, many exchanges."""
    half, certain = (
        _randomized("0.5"),
        {
            "kind": "channel",
            "responses": ["no", "yes"],
            "probabilities": [["1", "0"], ["1/2", "1/2"]],
        },
    )
    other = {**certain, "probabilities": [["1/2", "1/2"], ["1", "0"]]}
    every = (
        _LOSS,
        (*_LOSS, "--json"),
        _EXPLAIN,
        (*_EXPLAIN, "--json"),
        _CERTIFY,
        _VERIFY,
        _CHECKER,
    )
    trees = {
        "nothing was asked": _tree(_ANSWERS, []),
        "nothing was asked, with a budget": _tree(_ANSWERS, [], _budget("bayesian", "1")),
        "one value": _tree({"values": ["only"]}, [(half, "only")], _budget("basic", "1")),
        "an infinite loss": _tree(_ANSWERS, [(certain, "yes"), (half, "no")]),
        "an infinite loss, with a budget": _tree(
            _ANSWERS, [(half, "no"), (certain, "yes")], _budget("bayesian", "3")
        ),
        "what nobody can have answered": _tree(_ANSWERS, [(certain, "yes"), (other, "yes")]),
        "answers that cancel": _tree(
            _ANSWERS, [(half, "no"), (half, "yes")] * 3, _budget("bayesian", "1")
        ),
        "a budget that was broken": _tree(
            _ANSWERS, [(half, "no")] * 3, _budget("simplified", "1.2")
        ),
        "a budget that was broken on the way": _tree(
            _ANSWERS, [(half, "no")] * 3 + [(half, "yes")] * 3, _budget("bayesian", "1")
        ),
        "many exchanges": _tree(
            {"values": [0, 1, 2, 3]},
            [(_randomized(f"{1 + i % 7}/100"), (i * i) % 4) for i in range(60)],
            _budget("bayesian", "2"),
        ),
    }
    for name, tree in trees.items():
        yield _case(name, tree, *every)
    for index, (kind, budget) in enumerate((k, b) for k in ("basic", "bayesian") for b in "14"):
        tree = _tree(_ANSWERS, [(half, "yes")] * 2, _budget(kind, budget))
        yield _case(f"an infinite worst case {index}", tree, _DECIDE, query=certain)


def _composed() -> Iterator[Case]:
    """So many small queries that the rules are worth something."""
    tenth = _randomized("0.1")
    exchanges = [(tenth, ("no", "yes")[i * i % 3 % 2]) for i in range(300)]
    for index, rule in enumerate(RULES):
        guard = {"kind": "composition", "epsilon": "20.46", "delta": "1e-6", "rule": rule}
        tree = _tree(_ANSWERS, exchanges, guard)
        yield _case(f"three hundred, rule {index}", tree, (*_DECIDE, "--json"), query=tenth)


def _on_a_box() -> Iterator[Case]:
    """The guide's example, undecided, and with few nodes."""
    exchanges: list[tuple[Tree, Any]] = [(_HEART, 1), (_SLEEP, 12)]
    stroke = {
        "kind": "logistic",
        "weights": {"age": 0.0761, "sex": 0.0952},
        "intercept": -7.989,
        "epsilon": "2.8",
    }
    for kind in ("basic", "simplified", "bayesian"):
        for epsilon in ("1", "3", "6"):
            tree = _tree(_BODY, exchanges, _budget(kind, epsilon))
            commands = ((*_LOSS, "--json"), _DECIDE, (*_DECIDE, "--json"), _EXPLAIN)
            yield _case(f"person, {kind} at {epsilon}", tree, *commands, query=stroke)
    tree = _tree(_BODY, exchanges, _budget("bayesian", "3"))
    few = ("--nodes", "1")
    yield _case(
        "person, with one node",
        tree,
        (*_LOSS, *few),
        (*_LOSS, *few, "--json"),
        (*_DECIDE, *few),
        (*_EXPLAIN, *few, "--json"),
        query=stroke,
    )
    for epsilon in ("2.3", "2.5"):
        guard = _budget("simplified", epsilon)
        again = _tree(_BODY, exchanges, guard)
        decided = ((*_DECIDE, *few), (*_DECIDE, *few, "--json"))
        yield _case(f"person, undecided at {epsilon}", again, *decided, query=_SLEEP)
        asked = _tree(_BODY, [*exchanges, (_SLEEP, 12)], guard)
        told = ((*_LOSS, *few), (*_LOSS, *few, "--json"), (*_EXPLAIN, *few))
        yield _case(f"person, not known whether it respected {epsilon}", asked, *told)
    every = (_CERTIFY, _VERIFY, _CHECKER, (*_VERIFY, "--json"), (*_COMPARE, "--delta", "1e-6"))
    yield _case("person, proved", tree, *every)
    broken = _tree(_BODY, exchanges, _budget("bayesian", "1"))
    yield _case("person, not within the budget", broken, _CERTIFY, _VERIFY, _CHECKER)
    samples = "age,sex,pressure\n" + "".join(
        f"{20 + 7 * i},{i % 2},{90 + 11 * (i * i % 7)}\n" for i in range(10)
    )
    learned = (*_EXPLAIN, "--prior", "prior.csv", "--statement", "age >= 50 and sex == 1")
    yield _case("person, learned", tree, learned, (*learned, "--json"), prior_csv=samples)
    yield _case("person, nothing asked", _tree(_BODY, []), _LOSS, _EXPLAIN, _CERTIFY, _VERIFY)


def _asked() -> Iterator[Case]:
    """Refusals, and a query that has one response only, so that there is nothing to draw."""
    sure = {"kind": "channel", "responses": ["well"], "probabilities": [["1"], ["1"]]}
    half = _randomized("0.5")
    for kind in ("basic", "bayesian"):
        tree = _tree(_ANSWERS, [(half, "no")] * 2, _budget(kind, "1"))
        commands = (_ASK, (*_ASK, "--json"), (*_LOSS, "--json"))
        yield _case(f"refused by {kind}", tree, *commands, query=half, secret_json='"no"')
        yield _case(f"answered under {kind}", tree, *commands, query=sure, secret_json='"yes"')
    box = _tree(_BODY, [(_HEART, 1), (_SLEEP, 12)], _budget("bayesian", "1.5"))
    secret = '{"age": 40, "sex": 1, "pressure": 120}'
    yield _case("refused on a box", box, _ASK, query=_SLEEP, secret_json=secret)
    tree = _tree(_ANSWERS, [], _budget("basic", "1"))
    for name, text in {
        "outside": '"perhaps"',
        "not JSON": "no",
        "null": "null",
        "twice": '{"a": 1, "a": 2}',
        "a list": '["no"]',
    }.items():
        yield _case(f"a secret that is {name}", tree, _ASK, query=half, secret_json=text)
    yield _case("a secret that is not there", tree, _ASK, query=half)


def _proofs() -> Iterator[Case]:
    """Proofs of another transcript, and files that are no proofs."""
    half = _randomized("0.5")
    tree = _tree(_ANSWERS, [(half, "no")], _budget("bayesian", "1"))
    longer = as_text(_tree(_ANSWERS, [(half, "no")] * 2, _budget("bayesian", "1")))
    other = ("expost", "verify", "other.json", "proof.json")
    yield _case("a proof of less", tree, _CERTIFY, other, (*other, "--json"), other_json=longer)
    for name, text in {"empty": "", "a list": "[]", "an object": "{}", "no JSON": "{"}.items():
        commands = (_VERIFY, (*_VERIFY, "--json"), _CHECKER)
        yield _case(f"a proof that is {name}", tree, *commands, proof_json=text)
    yield _case("no proof", tree, _VERIFY)
    yield _case("a proof over its transcript", tree, ("expost", "certify", _FILE, "-o", _FILE))
    yield _case("too small a gap", tree, (*_CERTIFY, "--gap", "0"), (*_LOSS, "--gap", "-1"))
    yield _case("too few nodes", tree, (*_LOSS, "--nodes", "0"), (*_LOSS, "--threads", "3"))


def _commands() -> Iterator[Case]:
    """What is left of the commands."""
    yield Case("the version", {}, (("expost", "--version"),))
    yield Case("the demo", {}, (("expost", "demo", "--json"),))
    yield Case("no such experiment", {}, (("expost", "reproduce", "chess"),))
    yield Case("no runs", {}, (("expost", "reproduce", "linear", "--runs", "0"),))
    half = _randomized("0.5")
    tree = _tree(_ANSWERS, [(half, "no")])
    yield _case("no budget to compare", tree, _COMPARE, (*_COMPARE, "--epsilon-budget", "2"))
    yield _case("no filter to decide", tree, _DECIDE, query=half)
    bad = [("--delta", "2"), ("--delta", "0"), ("--epsilon-budget", "-1", "--delta", "1e-6")]
    yield _case("bad budgets to compare", tree, *((*_COMPARE, *options) for options in bad))
    empty = _tree(_ANSWERS, [], _budget("bayesian", "1"))
    yield _case("nothing to compare", empty, (*_COMPARE, "--delta", "1e-6"))
    yield _case("half a statement", tree, (*_EXPLAIN, "--statement", "value == 'no'"))
    yield _case("two kinds of loss", tree, (*_LOSS, "--many", _FILE), ("expost", "loss"))
    plot: Command = ("expost", "plot", _FILE, "-o", "odometer.svg")
    yield _case("a picture", tree, plot, (*plot, "--delta", "1e-6", "--json"))


def _bad_transcripts() -> Iterator[Case]:
    half = as_text(_randomized("0.5"))
    start = '{"version": 1, "domain": {"values": ["no", "yes"]}'
    exchange = f'{{"query": {half}, "response": "no"}}'
    documents = {
        "no file at all": None,
        "an empty file": "",
        "half a file": start,
        "a list": "[1, 2]",
        "nested too deep": "[" * 5000,
        "not a number": f'{start}, "exchanges": NaN}}',
        "no exchanges": f"{start}}}",
        "exchanges that are no list": f'{start}, "exchanges": {{}}}}',
        "an exchange that is no object": f'{start}, "exchanges": [3]}}',
        "an unknown field": f'{start}, "exchanges": [], "subject": "ann"}}',
        "a field twice": f'{start}, "version": 1, "exchanges": []}}',
        "another version": '{"version": 2, "domain": {"values": [1]}, "exchanges": []}',
        "a version as text": '{"version": "1", "domain": {"values": [1]}, "exchanges": []}',
        "no such response": f'{start}, "exchanges": [{exchange.replace("no", "maybe")}]}}',
        "a response that is an object": (
            f'{start}, "exchanges": [{{"query": {half}, "response": {{}}}}]}}'
        ),
        "no response": f'{start}, "exchanges": [{{"query": {half}}}]}}',
        "the second exchange is wrong": (
            f'{start}, "exchanges": [{exchange}, {exchange.replace("0.5", "-1")}]}}'
        ),
    }
    domains = {
        "no values": '{"values": []}',
        "a value twice": '{"values": [1, 1.0]}',
        "a vector without names": '{"values": [[1, 2]]}',
        "two kinds of domain": '{"values": [1], "box": [[0, 1]]}',
        "no kind of domain": "{}",
        "a row too short": '{"points": {"names": ["a", "b"], "rows": [[1]]}}',
        "a name twice": '{"points": {"names": ["a", "a"], "rows": [[1, 2]]}}',
        "a value that is null": '{"values": [null]}',
        "a number too large": '{"values": [1e999]}',
        "an empty box": '{"box": []}',
        "bounds the wrong way": '{"box": {"age": [1, 0]}}',
        "three bounds": '{"box": {"age": [0, 1, 2]}}',
        "bounds of integers that are none": '{"box": {"age": {"integers": [0, 1.5]}}}',
        "a category twice": '{"box": {"region": {"categories": ["a", "a"]}}}',
        "an unknown kind of side": '{"box": {"region": {"labels": ["a"]}}}',
    }
    guards = {
        "an unknown filter": '{"kind": "strict", "epsilon": "1"}',
        "a filter without a budget": '{"kind": "bayesian"}',
        "a filter with two budgets": '{"kind": "bayesian", "epsilon": "1", "ratio": "2"}',
        "a budget of zero": '{"kind": "basic", "epsilon": 0}',
        "a ratio of one": '{"kind": "basic", "ratio": 1}',
        "a budget that is null": '{"kind": "basic", "epsilon": null}',
        "a budget too large": '{"kind": "basic", "epsilon": 1e7}',
        "a delta where none belongs": '{"kind": "basic", "epsilon": 1, "delta": "1e-6"}',
        "no rule": '{"kind": "composition", "epsilon": 1, "delta": "1e-6"}',
        "an unknown rule": (
            '{"kind": "composition", "epsilon": 1, "delta": "1e-6", "rule": {"kind": "best"}}'
        ),
        "a delta above one": (
            '{"kind": "composition", "epsilon": 1, "delta": 2, "rule": {"kind": "basic"}}'
        ),
        "an order of one": (
            '{"kind": "approximate", "epsilon": 1, "delta": "1e-6",'
            ' "inner": {"kind": "renyi", "order": 1}}'
        ),
        "weights that miss one": (
            '{"kind": "approximate", "epsilon": 1, "delta": "1e-6",'
            ' "inner": {"kind": "mixture", "lambdas": [5, 9], "weights": ["0.5", "0.4"]}}'
        ),
        "a part above delta": (
            '{"kind": "approximate", "epsilon": 1, "delta": "1e-6",'
            ' "inner": {"kind": "whitehouse", "delta_prime": "1e-5"}}'
        ),
    }
    documents |= {
        name: f'{{"version": 1, "domain": {text}, "exchanges": []}}'
        for name, text in domains.items()
    }
    documents |= {
        name: f'{start}, "filter": {text}, "exchanges": []}}' for name, text in guards.items()
    }
    for name, text in documents.items():
        files = {} if text is None else {_FILE: text}
        yield Case(f"bad transcript: {name}", files, (_LOSS,))


def _bad_queries() -> Iterator[Case]:
    two = {"kind": "channel", "responses": ["a", "b"]}
    linear = {"kind": "linear", "weights": {"value": 1}, "epsilon": 1}
    grid = {"kind": "laplace", "weights": {"value": 1}, "range": [0, 4], "epsilon": 1}
    queries: dict[str, Any] = {
        "no kind": {"epsilon": 1},
        "unknown kind": {"kind": "rappor", "epsilon": 1},
        "no epsilon": {"kind": "randomized_response"},
        "epsilon of zero": _randomized("0"),
        "epsilon too large": _randomized("501"),
        "epsilon of letters": _randomized("small"),
        "epsilon with a zero below": _randomized("1/0"),
        "unknown field": {**_randomized("1"), "delta": 0},
        "unknown variant": {"kind": "unary_encoding", "variant": "best", "epsilon": 1},
        "a size too large": {"kind": "subset_selection", "size": 4, "epsilon": 1},
        "a seed that is none": {"kind": "local_hashing", "seed": "xy", "buckets": 2, "epsilon": 1},
        "one bucket": {"kind": "local_hashing", "seed": "5eed", "buckets": 1, "epsilon": 1},
        "an order too small": {"kind": "hadamard_response", "order": 4, "epsilon": 1},
        "an order that is no power": {"kind": "hadamard_response", "order": 12, "epsilon": 1},
        "a range too far": {"kind": "geometric", "range": [0, 4], "sensitivity": 1, "epsilon": 1},
        "rows that miss one": {**two, "probabilities": [["1/2", "1/3"]] * 4},
        "too few rows": {**two, "probabilities": [["1/2", "1/2"]]},
        "a negative probability": {**two, "probabilities": [["3/2", "-1/2"]] * 4},
        "ragged rows": {**two, "probabilities": [["1"]] * 4},
        "a response twice": {
            "kind": "channel", "responses": ["a", "a"], "probabilities": [["1/2", "1/2"]] * 4,
        },
        "too few scores": {"kind": "perturbation", "scores": [1], "range": [0, 1], "epsilon": 1},
        "a score outside": {
            "kind": "perturbation", "scores": [1, 2, 3, 4], "range": [0, 3], "epsilon": 1,
        },
        "an unknown coordinate": {**linear, "weights": {"age": 1}},
        "weights without names": {**linear, "weights": [1]},
        "a score that leaves": {**linear, "range": [0, 2]},
        "an empty range": {**linear, "range": [2, 2]},
        "a clip that is no truth": {**linear, "range": [0, 2], "clip": 1},
        "a grid of zero": {**grid, "grid": 0},
        "a grid off the ends": {**grid, "grid": 3},
        "a grid too fine": {**grid, "grid": "1e-9"},
        "a sigma too small": {
            "kind": "gaussian", "weights": {"value": 1}, "range": [0, 4], "grid": 1, "sigma": "0.1",
        },
        "no delta for it": {
            "kind": "gaussian", "weights": {"value": 1}, "range": [0, 4], "grid": 1, "sigma": 4,
        },
        "a window of zero": {**grid, "kind": "piecewise", "grid": 1, "window": 0},
        "utilities too far": {
            "kind": "exponential_mechanism", "responses": ["a", "b"], "utility": [[0, 9]] * 4,
            "sensitivity": 1, "epsilon": 400,
        },
        "a sensitivity exceeded": {
            "kind": "exponential_mechanism", "responses": ["a", "b"],
            "utility": [[0, 9], [0, 0], [0, 0], [0, 0]], "sensitivity": 1, "epsilon": 1,
        },
    }  # fmt: skip
    tree = _tree({"values": [1, 2, 3, 4]}, [], _budget("bayesian", "2"))
    for name, query in queries.items():
        yield _case(f"bad query: {name}", tree, _DECIDE, query=query)
    box = _tree({"box": {"value": [0, 4]}}, [], _budget("bayesian", "2"))
    for name, query in {
        "not for boxes": _randomized("1"),
        "unknown on a box": {**linear, "weights": {"age": 1}},
        "leaves on a box": {**linear, "range": [0, 2]},
        "categories that are none": {**linear, "weights": {"value": {"a": 1}}},
    }.items():
        yield _case(f"bad query: {name}", box, _DECIDE, query=query)


def _bad_tables() -> Iterator[Case]:
    study = as_text({"version": 1, "domain": _ANSWERS, "queries": {"q": _randomized("1")}})
    many: Command = ("expost", "loss", "--many", "data.csv", "--queries", "queries.json")
    head = "subject,query,response\n"
    tables = {
        "empty": "",
        "no rows": head,
        "no such column": "subject,query\nann,q\n",
        "no such query": f"{head}ann,q,no\nann,r,no\n",
        "no such response": f"{head}ann,q,maybe\n",
        "a row too long": f"{head}ann,q,no,yes\n",
        "no subject": f"{head},q,no\n",
    }
    for name, text in tables.items():
        files = {"data.csv": text, "queries.json": study}
        yield Case(f"bad table: {name}", files, (many, (*many, "-o", "losses.csv")))
    good = {"data.csv": f"{head}ann,q,no\nbob,q,yes\nann,q,no\n", "queries.json": study}
    wrong = ("losses.txt", "data.csv")
    yield Case("a table", good, (many, (*many, "--json"), *((*many, "-o", to) for to in wrong)))
    priors = {
        "empty": "",
        "no probability": "value\nno\n",
        "a value twice": "value,count\nno,1\nno,2\n",
        "no such value": "value,count\nmaybe,1\n",
        "negative": "value,count\nno,-1\nyes,2\n",
        "sums to less": "value,probability\nno,0.5\nyes,0.4\n",
        "no letters": "value,count\nno,one\n",
        "good": "value,probability\nno,0.25\nyes,0.75\n",
    }
    tree = _tree(_ANSWERS, [(_randomized("1"), "no")])
    for name, text in priors.items():
        learned = (*_EXPLAIN, "--prior", "prior.csv", "--statement", "value == 'no'")
        yield _case(f"prior: {name}", tree, learned, prior_csv=text)
    ages = _tree({"values": [20, 40, 60]}, [(_randomized("1"), 40)], _budget("bayesian", "1"))
    statements = (
        "value >= 40", "value", "value > 'x'", "age == 3", "(value == 20", "value / 0 == 1",
        "value == 20 == 1", "not value == 20 and value < 60 or value == 20", "value == 99", "",
        "value ** 2 == 4", "value in [20, 40]", "value = 20",
    )  # fmt: skip
    prior = "value,count\n20,1\n40,2\n60,1\n"
    commands = [(*_EXPLAIN, "--prior", "prior.csv", "--statement", text) for text in statements]
    yield _case("statements", ages, *commands, prior_csv=prior)
    claim = {"claim.json": as_text(_randomized("1")), "domain.json": as_text(_ANSWERS)}
    check: Command = ("expost", "check-client", "pairs.csv", "--query", "claim.json")
    check = (*check, "--domain", "domain.json")
    for name, text in {
        "empty": "",
        "no output": "input\nno\n",
        "no such input": "input,output\nmaybe,no\n",
        "no such output": "input,output\nno,maybe\n",
        "always true": "input,output\n" + "no,no\nyes,yes\n" * 60,
    }.items():
        further = (("--permanent",), ("--confidence", "2"))
        commands = [check, *((*check, *options) for options in further)]
        yield Case(f"client: {name}", {"pairs.csv": text, **claim}, tuple(commands))
