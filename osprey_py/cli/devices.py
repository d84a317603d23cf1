"""`osprey devices`: what `--device` may name, what each device can do, and why one cannot be used."""

from __future__ import annotations

from osprey_py.backends.discovery import choices, names, open_device
from osprey_py.backends.protocol import Capabilities, Unusable
from osprey_py.cli.options import Parser


def main(argv: list[str]) -> int:
    parser = Parser("osprey devices", description="List the devices, what each can do, or why it cannot be used.")
    parser.parse_args(argv)
    for name in names():
        try:
            devices = choices(name)
        except Unusable as error:
            print(_unusable(name, error))
            continue
        for device in devices:
            try:
                print(_usable(device, open_device(device).capabilities))
            except Unusable as error:
                print(_unusable(device, error))
    return 0


def _unusable(device: str, error: Unusable) -> str:
    lines = [f"{device}: cannot be used: {error.text}"]
    return "\n".join([*lines, f"    {error.help}"] if error.help else lines)


def _usable(device: str, c: Capabilities) -> str:
    numbers = [
        name for name, there in (("float64", c.float64), ("int64", c.int64), ("recursion", c.recursion)) if there
    ]
    lines = [f"{device}: {c.description}", f"    {', '.join(numbers)}; {c.units} units"]
    if c.memory is not None:
        largest = "" if c.largest_buffer is None else f", {_size(c.largest_buffer)} in one buffer"
        lines.append(f"    memory {_size(c.memory)}{largest}")
    if c.work_group > 1:
        lines.append(f"    work-groups of up to {c.work_group} items, {_size(c.local_memory)} of local memory")
    return "\n".join(lines)


def _size(n: int) -> str:
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n >= 1 << bits:
            return f"{n / (1 << bits):.4g} {unit}"
    return f"{n} bytes"
