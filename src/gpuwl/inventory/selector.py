"""Label selectors as `kubectl -l` takes them.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

import re
from collections.abc import Callable, Mapping

from gpuwl.errors import InputError

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]

_KEY = r"([A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?)"
_EQUAL = re.compile(rf"\s*{_KEY}\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*")
_SET = re.compile(rf"\s*{_KEY}\s+(in|notin)\s*\(([-A-Za-z0-9_.,\s]*)\)\s*")
_THERE = re.compile(rf"\s*(!?)\s*{_KEY}\s*")
_BETWEEN = re.compile(r",(?![^(]*\))")
"""A comma that stands in no parentheses."""


def parse(selector: str) -> Requirement:
    """Return what tells whether labels match; raises InputError for what is no selector."""
    requirements = [_requirement(part, selector) for part in _BETWEEN.split(selector)]
    return lambda labels: all(holds(labels) for holds in requirements)


def _requirement(part: str, whole: str) -> Requirement:
    if found := _SET.fullmatch(part):
        return _in(found[1], {one.strip() for one in found[4].split(",")}, found[3] == "in")
    if found := _EQUAL.fullmatch(part):
        return _in(found[1], {found[4]}, found[3] != "!=")
    if found := _THERE.fullmatch(part):
        key, wanted = found[2], not found[1]
        return lambda labels: (key in labels) == wanted
    raise InputError(
        f"-l {whole!r} is not a label selector",
        hint="write it as for kubectl: -l 'zone=a,pool in (x,y),!spot'",
    )


def _in(key: str, values: set[str], wanted: bool) -> Requirement:  # noqa: FBT001
    """`notin` and `!=` also match where the label is missing, as they do for the API server."""
    return lambda labels: (labels.get(key) in values) == wanted
