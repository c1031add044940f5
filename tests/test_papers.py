"""The papers of a release agree: version, date, licence and authors are the same wherever they are written."""

from __future__ import annotations

import re
import tomllib
from datetime import date

import pytest
import yaml

import discreet
from tests.doc_names import ROOT

RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.fixture(scope="module")
def changelog():
    return (ROOT / "CHANGELOG.md").read_text()


def test_one_version_everywhere(project, citation, changelog):
    latest, released = RELEASE.findall(changelog)[0]
    assert project["version"] == discreet.__version__ == citation["version"] == latest
    assert date.fromisoformat(released) == citation["date-released"]


def test_one_licence_everywhere_and_its_whole_text(project, citation):
    text = (ROOT / "LICENSE").read_text()
    assert project["license"] == citation["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_authors_agree(project, citation):
    assert [author["name"] for author in project["authors"]] == [author["name"] for author in citation["authors"]]


def test_the_changelog_has_open_entries_on_top_and_says_what_each_release_means_for_privacy(changelog):
    first, *releases = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    assert first.startswith("Unreleased\n")
    assert len(releases) == len(RELEASE.findall(changelog)) >= 1
    assert all("### Privacy\n" in release for release in releases)


def test_the_workflow_tries_the_python_versions_that_the_package_names(project):
    named = [entry.rpartition(" ")[2] for entry in project["classifiers"] if "Python :: 3." in entry]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
