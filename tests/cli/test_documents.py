"""The JSON documents are what docs/schemas says, in success and in failure."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.conftest import Run

from gpuwl.cli.commands import cli
from gpuwl.cli.helping import Group
from gpuwl.k8s.client import Cluster

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
NO_DOCUMENT = {"help", "completion"}


def schemas() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_bytes()) for path in SCHEMAS.glob("*.json")}


REGISTRY: Registry[Any] = Registry().with_resources(
    [(name, Resource.from_contents(found)) for name, found in schemas().items()]
)


def check(schema: str, text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    Draft202012Validator(schemas()[schema], registry=REGISTRY).validate(document)
    return document


def names() -> set[str]:
    found = set()
    for name, command in cli.commands.items():
        below = command.commands if isinstance(command, Group) else ()
        found |= {f"{name}-{one}" for one in below} or {name}
    return found - NO_DOCUMENT


def test_every_command_has_a_schema() -> None:
    assert {name.removesuffix(".json") for name in schemas()} == names() | {"envelope"}


def test_each_schema_is_one() -> None:
    for found in schemas().values():
        Draft202012Validator.check_schema(found)


IN_ORDER = [
    ("run --all", 0),
    ("step 7", 0),
    ("run --all --dry-run", 0),
    ("steps", 0),
    ("explain", 0),
    ("verify", 0),
    ("reset", 0),
    ("step 7", 3),
    ("version", 0),
    ("local up --name tests", 0),
    ("local status --name tests", 0),
    ("local kubeconfig --name tests", 0),
    ("local logs --name tests", 0),
    ("local binaries", 0),
    ("local down --name nobody", 0),
    ("local status --name nobody", 3),
    ("run", 2),
    ("step 9", 2),
]
"""Commands and their exit codes, on one root: each finds what the one before left."""


@pytest.mark.cluster
def test_documents(gpuwl: Run, cluster: Cluster) -> None:
    for words, code in IN_ORDER:
        done = gpuwl(*words.split(), "--output", "json")
        assert done.returncode == code, (words, done.stderr)
        command = [one for one in words.split() if not one.startswith("-") and not one.isdigit()]
        schema = "-".join(command[: 2 if command[0] == "local" else 1])
        document = check("envelope.json" if code == 2 else f"{schema}.json", done.stdout)
        assert document["exitCode"] == code
        assert (document["error"] is None) == (code == 0 or "nobody" in words)
