"""Every numbered rule of spec/ is named by a test, and no test names a rule that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULE = re.compile(r"\*\*([A-Z]{1,2}\d+(?:\.\d+)?)\*\*")
NAMED = re.compile(r"\b([A-Z]{1,2}\d+(?:\.\d+)?)\b")
RANGE = re.compile(r"\b([A-Z]{1,2})(\d+)(?:\.(\d+))?\s*(?:-|–|to)\s*\1?(\d+)(?:\.(\d+))?\b")


def rules() -> dict[str, str]:
    """Each rule with the file that states it."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "spec").glob("*.md")):
        for rule in RULE.findall(path.read_text(encoding="utf-8")):
            assert rule not in found, f"{rule} is stated in {found[rule]} and in {path.name}"
            found[rule] = path.name
    return found


def named() -> set[str]:
    """Every rule that tests name, one by one or in a range such as N1-N4."""
    found: set[str] = set()
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix not in (".py", ".osp") or path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8", errors="replace").replace("_", " ")
        found.update(NAMED.findall(text))
        for letter, first, minor, last, minor_last in RANGE.findall(text):
            if minor and minor_last:
                found.update(f"{letter}{first}.{k}" for k in range(int(minor), int(minor_last) + 1))
            elif not minor and not minor_last:
                found.update(f"{letter}{k}" for k in range(int(first), int(last) + 1))
    return found


def test_every_rule_is_named_by_a_test() -> None:
    stated, in_tests = rules(), named()
    assert len(stated) > 100
    missing = sorted(f"{rule} ({where})" for rule, where in stated.items() if rule not in in_tests)
    assert not missing
