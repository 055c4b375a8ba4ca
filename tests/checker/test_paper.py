"""docs/checker.md says what the checker says, and the schema holds for every dump."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.checker.support import CASES, REPOSITORY, run_main

from gpuwl import checker

PAPER = (REPOSITORY / "docs" / "checker.md").read_text(encoding="utf-8")
OUTPUTS = re.findall(r"<!-- output: (\S+)((?: \S+)*) -->\n```\n(.*?)```", PAPER, re.DOTALL)
SCHEMA = json.loads((REPOSITORY / "docs" / "schemas" / "check.json").read_text())


@pytest.mark.parametrize(("case", "options", "text"), OUTPUTS, ids=lambda value: value[:40])
def test_the_outputs_are_real(case: str, options: str, text: str) -> None:
    (path,) = (path for path in CASES if path.stem == case)
    result = run_main(path.read_bytes(), *options.split())
    assert text == result.out + result.err


def test_options_and_fields_are_those_of_the_help() -> None:
    in_help = set(re.findall(r"(?m)^  (?:-h, )?(--[a-z]+)", checker.HELP))
    assert set(re.findall(r"(?m)^\| .*?`(--[a-z]+)", PAPER)) == in_help
    fields = {*SCHEMA["properties"], *SCHEMA["properties"]["nodes"]["items"]["properties"]}
    for field in fields:
        assert f"`{field}`" in PAPER


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_schema_holds(case: Path) -> None:
    result = run_main(case.read_bytes(), "--output", "json")
    if result.code != 2:
        Draft202012Validator(SCHEMA).validate(json.loads(result.out))
