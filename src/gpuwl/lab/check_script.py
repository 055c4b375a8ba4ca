"""Render check-config.sh: the checker as one file that needs a shell and Python 3.8, no gpuwl."""

from pathlib import Path

from gpuwl import checker
from gpuwl.lab.artifacts import Artifacts

RELATIVE_PATH = "bin/check-config.sh"
MODE = 0o755
# A here-document over 64 KiB needs a writable temporary folder; this leaves room to spare.
LARGEST_SOURCE = 60 * 1024
_SOURCE = Path(checker.__file__)
_END = "END_OF_CHECKER"

_HEAD = r"""#!/bin/sh
# Do the GPU labels in a node dump agree with what the nodes advertise?
#
#     kubectl get nodes -o json > nodes.json
#     ./check-config.sh nodes.json        (all options: --help)
#
# Exit code: 0 all agree, 1 at least one mismatch, 2 not judged.
# This one file is all there is to copy; it needs a POSIX shell and python3, 3.8 or newer.
# Rendered from src/gpuwl/checker.py of the gpuwl project: change it there.

# A shell that runs as sh does not read BASH_ENV. Where it is bash, it still takes options and these
# names from the environment; set and unset are special built-ins, which nothing there can replace.
set +eux
unset -f command printf python3
if ! command -v python3 >/dev/null 2>&1; then
    printf '%s\n' 'check-config: python3 was not found: install Python 3.8 or newer' >&2
    exit 2
fi

# The verdicts come back as 10, 11 and 12, so that no failure to start can pass for one of them:
# a broken interpreter and an unwritable temporary folder both give 1. An interrupt may end Python at
# once, as nothing is left behind: its own way of ending, while the source compiles, is a traceback.
command python3 -I -S -c '
import sys
if sys.version_info < (3, 8):
    version = "%d.%d" % sys.version_info[:2]
    sys.stderr.write("check-config: python3 is Python " + version + ": 3.8 or newer is needed\n")
    sys.exit(12)
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal
if getsignal(SIGINT) is default_int_handler:
    signal(SIGINT, SIG_DFL)
with open(3, encoding="utf-8") as file:
    code = compile(file.read(), "check-config", "exec")
names = {"__name__": "check_config"}
exec(code, names)
names["run_script"]((10, 11, 12))
' "$@" 3<<'END_OF_CHECKER'
"""

_TAIL = r"""END_OF_CHECKER
status=$?
case $status in
    10) exit 0 ;;
    11) exit 1 ;;
    12) exit 2 ;;
    130 | 143) exit "$status" ;;
esac
printf '%s\n' "check-config: python3 could not run the checker (status $status)" >&2
exit 2
"""


def render() -> str:
    """Return the text of check-config.sh, with the source of the checker in it.

    Raises ValueError where that source cannot be a here-document: too long, or with its end in it.
    """
    source = _SOURCE.read_text(encoding="utf-8")
    if len(source.encode()) >= LARGEST_SOURCE:
        raise ValueError(f"checker.py must stay below {LARGEST_SOURCE} bytes")
    if _END in source:
        raise ValueError(f"checker.py must not contain {_END}")
    return f"{_HEAD}{source}{_TAIL}"


def install(artifacts: Artifacts) -> Path:
    """Write the checker below a lab's root, executable, and return its path.

    Raises SetupError where it cannot be written.
    """
    return artifacts.write(RELATIVE_PATH, render(), mode=MODE)
