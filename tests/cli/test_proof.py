"""``expost certify`` and ``expost verify``."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import expost as xp
from conftest import Run
from expost.proof import verify


@pytest.fixture
def file(tmp_path: Path) -> Path:
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    heart = xp.logistic({"age": -0.059, "sex": -1.456}, intercept=3, epsilon=1)
    sleep = xp.linear({"age": 0.1}, range=(2, 9), clip=True, epsilon=1)
    transcript = xp.Transcript(box, xp.BayesianFilter(epsilon=4)).add(heart, 1).add(sleep, 9)
    path = tmp_path / "transcript.json"
    transcript.save(path)
    return path


def test_a_proof_is_written_and_verified(run: Run, file: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    code, out, _ = run("certify", file, "-o", proof)
    assert code == 0
    assert "the realized loss is at most" in out
    code, out, err = run("verify", file, proof)
    assert (code, err) == (0, "")
    assert "at its end the loss is within the budget of 4" in out


def test_the_command_writes_the_proof_that_python_gives(run: Run, tmp_path: Path) -> None:
    """Also where all its work is used up, as here: it shares none with the replay."""
    generator, transcript = random.Random(7), xp.Transcript(xp.Box([(-1, 1)] * 5))
    for _ in range(30):
        weights = [generator.randint(-9, 9) / 10 for _ in range(5)]
        end = sum(map(abs, weights))
        query = xp.linear(weights, range=(-end, end), epsilon="0.1")
        transcript = transcript.add(query, generator.choice([-end, end]))
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    transcript.save(file)
    assert run("certify", file, "-o", proof, "--gap", "0.004")[0] == 0
    assert proof.read_bytes() == xp.proof.certificate(transcript, gap=0.004).encode()


@pytest.mark.parametrize(
    ("budget", "options", "said"),
    [
        (
            "0.5",
            ["--nodes", "1"],
            "does not show that the loss is within the budget of 0.5; --nodes 10 may",
        ),
        ("0.5", ["--nodes", "10"], "at its end the loss is within the budget of 0.5"),
        ("0.4", [], "does not show that the loss is within the budget of 0.4\n"),
    ],
)
def test_a_proof_that_does_not_show_the_budget_says_what_may(
    run: Run, file: Path, tmp_path: Path, budget: str, options: list[str], said: str
) -> None:
    file.write_text(file.read_text("utf-8").replace('"4"', f'"{budget}"'), encoding="utf-8")
    assert said in run("certify", file, "-o", tmp_path / "proof.json", *options)[1]


def test_programs_get_json(run: Run, file: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    code, out, _ = run("certify", file, "-o", proof, "--gap", "0.001", "--json")
    created = json.loads(out)
    assert code == 0
    code, out, _ = run("verify", file, proof, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["verified"]
    assert created["shows_end_within_budget"] is result["shows_end_within_budget"] is True
    assert result["leaves"] == created["leaves"] > 1
    assert result["loss"] == pytest.approx(created["loss"], abs=2e-9)


@pytest.mark.parametrize(
    ("filter_", "code", "shown"),
    [
        (xp.BayesianFilter(epsilon="1.5"), 3, False),
        (xp.SimplifiedFilter(epsilon=2), 0, True),
        (xp.BasicFilter(ratio=2), 3, False),
        (xp.ApproximateFilter(epsilon="4", delta="1e-6", inner=xp.filters.Rogers()), 0, None),
        (None, 0, None),
    ],
)
def test_a_bound_above_the_budget_shows_nothing_and_is_exit_code_three(
    run: Run, tmp_path: Path, filter_: xp.filters.Filter | None, code: int, shown: bool | None
) -> None:
    """The transcript has a loss of 2, so no proof can show less."""
    query = xp.logistic([1000], epsilon=1)
    transcript = xp.Transcript(xp.Box([(-1, 1)]), filter_)
    for _ in range(2):
        transcript = transcript.add(query, 1)
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    transcript.save(file)
    assert run("certify", file, "-o", proof)[0] == 0
    result, out, err = run("verify", file, proof)
    assert (result, err) == (code, "")
    assert ("does not show that the loss is within the budget" in out) == (shown is False)
    assert ("at its end the loss is within the budget" in out) == (shown is True)
    assert "above" not in out
    result, out, _ = run("verify", file, proof, "--json")
    assert result == code
    assert json.loads(out)["shows_end_within_budget"] is shown
    program = [sys.executable, "-I", "-S", verify.__file__, str(file), str(proof)]
    alone = subprocess.run(program, capture_output=True, text=True, check=False)
    assert alone.returncode == code
    assert ("does not show that the loss is within the budget" in alone.stdout) == (shown is False)


def test_a_proof_that_fails_is_exit_code_one_with_the_place(
    run: Run, file: Path, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.json"
    run("certify", file, "-o", proof)
    document = json.loads(proof.read_text("utf-8"))
    document["groups"][0]["smallest"][-1]["multipliers"][0] += 1
    proof.write_text(json.dumps(document))
    code, out, err = run("verify", file, proof)
    assert (code, out) == (1, "")
    assert err.startswith("expost: the proof fails at groups.0.smallest.")
    assert err.count("\n") == 1
    code, out, _ = run("verify", file, proof, "--json")
    assert code == 1
    assert json.loads(out)["verified"] is False


def test_a_good_end_is_no_excuse_for_a_budget_that_was_not_respected(
    run: Run, tmp_path: Path
) -> None:
    once = xp.randomized_response(epsilon=1)
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    for response in ("yes", "yes", "no", "no"):
        transcript = transcript.add(once, response)
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    transcript.save(file)
    assert run("certify", file, "-o", proof)[0] == 0
    code, out, _ = run("verify", file, proof)
    assert code == 1
    assert "at its end the loss is within the budget of 1" in out
    assert "no: the filter refuses exchange 2" in out
    program = [sys.executable, "-I", "-S", verify.__file__, str(file), str(proof)]
    alone = subprocess.run(program, capture_output=True, text=True, check=False)
    assert alone.returncode == 0
    said = "whether the budget was respected on the way is not checked here"
    assert alone.stdout.splitlines()[-1] == said


def test_a_budget_with_a_delta_that_was_not_respected_is_exit_code_one(
    run: Run, tmp_path: Path
) -> None:
    rule = xp.filters.Renyi(order="12.5")
    filter_ = xp.ApproximateFilter(epsilon="1", delta="1e-6", inner=rule)
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), filter_)
    for response in ("yes", "yes", "no", "no"):
        transcript = transcript.add(xp.randomized_response(epsilon=1), response)
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    transcript.save(file)
    assert run("certify", file, "-o", proof)[0] == 0
    code, out, _ = run("verify", file, proof)
    assert "no: the filter refuses exchange 2" in out
    assert code == 1


def test_files_in_the_wrong_order_are_asked_about(run: Run, file: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    run("certify", file, "-o", proof)
    code, out, err = run("verify", proof, file)
    assert (code, out) == (2, "")
    assert err.startswith(f"expost: {proof}: ")
    assert "; expected a " in err
    program = [sys.executable, "-I", "-S", verify.__file__, str(proof), str(file)]
    alone = subprocess.run(program, capture_output=True, text=True, check=False)
    place = "the transcript, which looks like a proof: is the order of the files right?"
    assert (alone.returncode, alone.stderr) == (1, f"verify: the proof fails at {place}\n")


def test_a_pipe_is_no_proof(run: Run, file: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = run("verify", file, pipe)
    assert (code, err.count("\n")) == (2, 1)
    assert "not a regular file" in err
    code, _, err = run("certify", file, "-o", tmp_path / "no" / "such" / "folder")
    assert (code, err.count("\n")) == (2, 1)


def test_a_proof_of_the_end_comes_with_what_a_replay_says_of_the_way(
    run: Run, tmp_path: Path
) -> None:
    transcript = xp.Transcript(xp.FiniteSet(["y", "n"]), xp.BayesianFilter(epsilon=1))
    for response in "yyynnn":
        transcript = transcript.add(xp.randomized_response(1), response)
    file, proof = tmp_path / "lucky.json", tmp_path / "proof.json"
    transcript.save(file)
    for command in (("certify", file, "-o", proof), ("verify", file, proof)):
        printed = json.loads(run(*command, "--json")[1])
        assert printed["shows_end_within_budget"] is True
        assert (printed["budget_respected"], printed["first_refused"]) == (False, 2)
        assert 2.99 < printed["peak"]["upper"] < 3.01
        assert "no: the filter refuses exchange 2" in run(*command)[1]


def test_a_proof_is_not_written_over_its_transcript(run: Run, file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(file)
    for out in (file, link):
        message = f"expost: {out}: would overwrite an input of the command\n"
        assert run("certify", file, "-o", out) == (2, "", message)
    assert file.read_bytes() == before


def test_a_transcript_that_cannot_be_verified_is_named(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    message = f"expost: {missing}: cannot be read: No such file or directory\n"
    assert run("verify", missing, missing) == (2, "", message)


@pytest.mark.parametrize(("command", "code"), [("verify", 3), ("loss", 0)])
def test_a_reader_who_leaves_does_not_change_the_exit_code(
    run: Run, tmp_path: Path, command: str, code: int
) -> None:
    query = xp.randomized_response(epsilon=1)
    filter_ = xp.BayesianFilter(epsilon="0.5")
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    xp.Transcript(xp.FiniteSet([0, 1]), filter_).add(query, 1).save(file)
    assert run("certify", file, "-o", proof)[0] == 0
    files = [str(file), str(proof)] if command == "verify" else [str(file)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", "from expost.cli.main import main; main()", command, *files],
        stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, "")
