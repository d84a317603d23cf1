"""The machine code of a kernel that is no matrix product: one function for each shape of its launches.

Comes in: a lowered kernel and the kinds of its slots. Goes out: for a step, the native function and its packed
arguments. What is proven of a launch depends on its integers alone, so it is remembered for them; and for integers not
seen before, the proofs found for others are checked (kernel/proof.py) before a new one is sought. Launches of one shape
share a function and differ in the numbers it is given."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import cast

from osprey_py.backends.host import objects
from osprey_py.backends.host.native import Library, machine
from osprey_py.backends.host.packing import Frame, Packer
from osprey_py.backends.host.pool import Plan
from osprey_py.backends.host.widths import SCALAR, widths
from osprey_py.backends.protocol import Kind, Step, StepOp, Storage
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.fingerprint import fingerprint
from osprey_py.kernel.ir import FLOAT, fold_parts, walk
from osprey_py.kernel.nest import Nest, Number
from osprey_py.kernel.proof import Proofs
from osprey_py.kernel.ranges import Ranges

MOST_REMEMBERED = 4096
"""Launches that are remembered; when there are more it begins anew."""

MOST_SHAPES = 12
"""Shapes of one kernel that get code of their own; later ones share code that relies on nothing."""

CLAIM = 40_000
"""Operations that one claim of a thread takes, about ten microseconds."""


Made = tuple[str, list[Number]]
"""A module's text and the numbers it reads."""


@dataclass(frozen=True, eq=False, slots=True)
class Version:
    """The code of one shape. numbers: what it reads after the uniforms."""

    library: Library
    address: int
    numbers: tuple[Number, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """What is remembered of a launch: its code, the words that follow its uniforms, and elements that a claim
    takes."""

    address: int
    numbers: bytes
    grain: int


class Elementwise:
    """The code of one kernel. kernel: None for an accumulate step. versions: by shape; entries: by integers."""

    def __init__(
        self, op: StepOp, kernel: Lowered | None, kinds: tuple[Kind, ...], nests: bool = True, vectors: bool = True
    ) -> None:
        """nests: False leaves out everything that relies on a launch's integers, vectors included. vectors: False
        leaves out these."""
        self.op = op
        self.kernel = kernel
        self.kinds = kinds
        uniforms = () if kernel is None else kernel.uniforms
        self._vectors = vectors
        self._packer = Packer(len(kinds), uniforms)
        self._nest = Nest(kernel) if nests and kernel is not None and not kernel.general else None
        self._cost = None if self._nest is None else Cost(self._nest.kernel)
        integers = tuple(k for k, t in enumerate(uniforms) if t is not FLOAT)
        self._deciding = () if self._nest is None else self._nest.questions.deciding(integers)
        self.versions: dict[Hashable, Version] = {}
        self.entries: dict[tuple[object, ...], Entry] = {}
        self._plain: Version | None = None
        self._proofs = Proofs(self._prove)
        self._structure: str | None = None

    def add(self, plan: Plan, frame: Frame, position: int, step: Step, inputs: tuple[Storage, ...]) -> None:
        """Append the step to the plan."""
        address, args, grain = self.bind(frame, position, step, inputs)
        plan.add(address, args, step.n, grain)

    def bind(self, frame: Frame, position: int, step: Step, inputs: tuple[Storage, ...]) -> tuple[int, int, int]:
        """(function, its packed arguments, grain) for a step on these inputs."""
        if self._nest is None:
            address, numbers, grain = self._scalar().address, b"", step.n
        else:
            uniforms = step.uniforms
            key = (step.n, *(len(s.data) for s in inputs), *(uniforms[k] for k in self._deciding))
            entry = self.entries.get(key)
            if entry is None:
                if len(self.entries) >= MOST_REMEMBERED:
                    self.entries.clear()
                entry = self.entries[key] = self._look(cast(tuple[int, ...], key))
            address, numbers, grain = entry.address, entry.numbers, entry.grain
            if frame.notes is not None:
                frame.notes.decide(position, self._deciding)
        return address, self._packer.pack(frame, position, step, inputs, numbers), grain

    def _scalar(self) -> Version:
        """The code that relies on nothing."""
        if self._plain is None:

            def make() -> Made:
                from osprey_py.backends.host import writing

                return writing.plain(self.op, self.kernel, self.kinds)

            self._plain = self._version("plain", make)
        return self._plain

    def _version(self, shape: str, make: Callable[[], Made]) -> Version:
        """The code of one shape, from the object cache where it is known. make: the module and the numbers it reads;
        they are kept with the code, as a constant of the module."""
        encode = self._nest.encode if self._nest is not None else None

        def text() -> str:
            module, numbers = make()
            codes = [c for x in numbers for c in encode(x)] if encode is not None else []
            items = ", ".join(f"i64 {c}" for c in (len(codes), *codes))
            return f"{module}@numbers = constant [{len(codes) + 1} x i64] [{items}]\n"

        if self._structure is None:
            self._structure = "" if self.kernel is None else fingerprint(self.kernel)
        kinds = [k.value for k in self.kinds]
        name = f"{objects.sources()} {machine().lanes} {machine().f16c} {self.op} {kinds} {shape}\n{self._structure}"
        library = machine().load_made(name, text, ("launch", "numbers"))
        return Version(library, library.addresses["launch"], self._numbers(library.addresses["numbers"]))

    def _numbers(self, address: int) -> tuple[Number, ...]:
        count = ctypes.c_int64.from_address(address).value
        if self._nest is None or count == 0:
            return ()
        codes = (ctypes.c_int64 * count).from_address(address + 8)
        triples = zip(codes[::3], codes[1::3], codes[2::3], strict=True)
        return tuple(self._nest.decode(t) for t in triples)

    def _look(self, key: Sequence[int]) -> Entry:
        version, numbers, grain = self._proofs.of(key)
        # A sum stays within 64 bits, but a multiple need not: the code's arithmetic wraps, and so may its numbers.
        words = [(x + 2**63) % 2**64 - 2**63 for x in numbers]
        return Entry(version.address, struct.pack(f"<{len(words)}q", *words), grain)

    def _prove(self, key: Sequence[int]) -> tuple[Version, tuple[int, ...], int]:
        """The code of a launch, its numbers, and the elements of a claim."""
        nest = self._nest
        assert nest is not None
        n, lengths = key[0], key[1 : 1 + len(self.kinds)]
        known: list[int | float] = [math.nan] * len(nest.kernel.uniforms)
        for k, u in zip(self._deciding, key[1 + len(self.kinds) :], strict=True):
            known[k] = u
        facts = nest.facts(lengths, known, n)
        digits = facts.digits(None)
        extent = digits[0].extent if digits else 1
        how = widths(nest.kernel, machine().lanes, extent) if self._vectors else SCALAR
        shape = (nest.key(facts), how)
        version = self.versions.get(shape)
        if version is None:
            if len(self.versions) < MOST_SHAPES:

                def make() -> Made:
                    from osprey_py.backends.host import writing

                    return writing.shaped(self.op, nest.shape(facts), self.kinds, how)

                version = self.versions[shape] = self._version(repr(shape), make)
            else:
                version = self._scalar()
        return version, tuple(nest.numbers(facts, version.numbers)), self._grain(facts, extent, n)

    def _grain(self, facts: Ranges, extent: int, n: int) -> int:
        """Elements for a claim: enough to be worth it, whole rows, so that no row's own work is done twice."""
        if self.op != "map":
            return n
        assert self._cost is not None
        grain = max(1, CLAIM // self._cost.of(facts))
        unit = machine().lanes if extent >= n else extent
        return -(-grain // unit) * unit


class Cost:
    """Operations that an element takes, roughly: those outside folds, and those of each fold's turns."""

    def __init__(self, kernel: Lowered) -> None:
        nodes = tuple(walk(kernel.roots))
        self._once = sum(_WEIGHTS.get(n.op, 1) for n in nodes)
        self._folds = []
        for node in nodes:
            if node.op == "fold":
                count, _, nexts, _ = fold_parts(node)
                self._folds.append((count, sum(_WEIGHTS.get(n.op, 1) for n in walk(nexts))))

    def of(self, facts: Ranges) -> int:
        total = self._once
        for count, work in self._folds:
            bounds = facts.bounds(count)
            total += work * (16 if bounds is None else min(max(bounds.high, 1), 1 << 40))
        return total


_WEIGHTS = {"exp": 20, "ln": 25, "tanh": 40, "fmodi": 60, "uquot": 20, "urem": 20, "fdivi": 4, "sqrt": 6}
