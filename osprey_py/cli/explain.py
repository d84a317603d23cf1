"""`osprey explain E0xxx`: what a diagnostic code means, with a wrong program and a right one."""

from __future__ import annotations

import re
import sys
import textwrap

from osprey_py.cli.options import Parser, use_colour


def main(argv: list[str]) -> int:
    parser = Parser(
        "osprey explain",
        description="Say what a diagnostic code means, with a wrong program and a right one. Without a code: list them.",
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="as in `error[E0101]`")
    options = parser.parse_args(argv)

    from osprey_py.source.codes import CODES

    if options.code is None:
        for code, title in CODES.items():
            print(f"{code}  {title}")
        return 0
    code = options.code.strip("[]").upper()
    if code not in CODES:
        print(_unknown(options.code, code), file=sys.stderr)
        return 2
    print(_shown(code, CODES[code], use_colour(sys.stdout)))
    return 0


def _shown(code: str, title: str, colour: bool) -> str:
    from osprey_py.source.explain import page

    def strong(text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if colour else text

    p = page(code)
    wrong, right = (textwrap.indent(program.rstrip("\n"), "    ") for program in (p.wrong, p.right))
    return "\n\n".join([strong(f"{code}: {title}"), p.text, strong("Wrong:"), wrong, strong("Right:"), right])


def _unknown(written: str, code: str) -> str:
    from osprey_py.source.codes import CODES

    hint = "`osprey explain` lists them"
    if found := re.fullmatch(r"([EW]?)(\d{1,4})", code):
        letter, number = found[1] or "E", int(found[2])
        distances = {c: abs(int(c[1:]) - number) for c in CODES if c[0] == letter}
        near = min(distances, key=distances.__getitem__)
        hint = f"did you mean {near}?" if distances[near] <= 5 else hint
    return f"osprey explain: no code `{written}`; {hint}"
