"""Draw a real run as docs/run.svg: `gpuwl run --all --local --rm` on a terminal of 100 columns.

python scripts/picture.py docs/run.svg
"""

import os
import pty
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 100
TITLE = "gpuwl run --all --local"
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""rich's template fetches its font; a picture in a repository asks no server for anything."""


UP = "\x1b[1A"
MOVES = re.compile(r"\x1b\[(\?25[lh]|\d*[AKJ])")
"""What moves a cursor or hides it; a line that it went up to was written again."""


def main() -> None:
    """Run, record, draw."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        said = _run(
            [str(Path(sys.executable).with_name("gpuwl")), *TITLE.split()[1:], "--rm"], folder
        )
    shown = said.replace(f"{folder}/gpuwl", "/root/gpuwl")
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title=TITLE, unique_id="gpuwl")
    target.write_text("\n".join(line.rstrip() for line in FONTS.sub("", svg).splitlines()) + "\n")


def _run(command: list[str], folder: str) -> str:
    """Return what a command writes to a terminal."""
    heard = bytearray()

    def listen(descriptor: int) -> bytes:
        chunk = os.read(descriptor, 1 << 16)
        heard.extend(chunk)
        return chunk

    os.environ |= {
        "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
        "XDG_STATE_HOME": f"{folder}/state",
        "GPUWL_ROOT": f"{folder}/gpuwl",
        "GPUWL_QUIET": "0",
        "LC_ALL": "C.UTF-8",
    }
    code = os.waitstatus_to_exitcode(pty.spawn(command, listen))
    if code:
        sys.exit(code)
    lines: list[str] = []
    for line in heard.decode().replace("\r\n", "\n").split("\n"):
        del lines[len(lines) - line.count(UP) :]
        lines.append(MOVES.sub("", line).rpartition("\r")[2])
    return "\n".join(lines)


if __name__ == "__main__":
    main()
