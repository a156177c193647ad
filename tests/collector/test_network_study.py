"""A small study over HTTP while everything fails; ``make collector`` has 2,000 devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.backup_sites import FileSite, PostgresSite
from support.network_study import NetworkStudy


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> FileSite | PostgresSite:
    if request.param == "sqlite":
        return FileSite(tmp_path)
    return PostgresSite(tmp_path, request.getfixturevalue("postgres"))


def test_a_study_over_a_bad_network_is_complete_and_clean(
    site: FileSite | PostgresSite, tmp_path: Path
) -> None:
    study = NetworkStudy(site, tmp_path, 40, seed=36)
    try:
        report = study.play()
    finally:
        study.close()
    assert report.counts["killed"] == report.counts["restored"] == 1
    assert min(report.counts[fault] for fault in ("repeated", "late")) > 10
    assert report.exchanges > 100
