"""The table of diagnostic codes: what each one is about.

E00xx text and syntax, E01xx names and modules, E02xx types, E03xx effects and purity, E04xx match, E05xx run time,
E06xx input files and tensors. A code is given once and never re-used.
"""

from __future__ import annotations

CODES: dict[str, str] = {
    # --- text and syntax ---------------------------------------------------------------------------------------
    "E0001": "something stands where the grammar does not allow it",
    "E0002": "a bracket is never closed, or closes nothing",
    "E0003": "a character that no token begins with",
    "E0004": "a string or an interpolation without its end",
    "E0005": "an escape that is not one",
    "E0006": "a number that is not written as numbers are",
    "E0007": "a number out of range",
    "E0008": "a reserved word",
    "E0009": "a value is thrown away",
    "E0010": "a block ends in a statement and has no value",
    "E0011": "`if` without `else`",
    "E0012": "a declaration where only statements may stand",
    "E0013": "named and positional arguments mixed",
    "E0014": "something is given twice",
    "E0015": "`...` or `..` before the end of a pattern",
    "E0016": "comparisons do not chain",
    "E0017": "a file that is not UTF-8 text, or cannot be read",
    "E0018": "an operation of an effect that is not a function",
}
