"""The backward pass: from a tape, last entry first, adjoints.

Comes in: the entries of a tape (graph/tape.py), the Value of a function's result, the runtime. Goes out: adjoints on the
Values of the parameters, as launches that nobody has run yet.

Every float of the host is a buffer of one element here, so nothing is forced. The recipe of a launch (kernel/derive)
says which launches give the subtotals of its inputs, in the order in which they are added: `x̄ = (0.0 + s_last) + …`.
The 0.0 in front is added at the end, where it can be seen: adjoints enter contributions linearly, so until then it
decides about signs of zeros only. What is scattered is added by `accumulate`, whose base must have no -0.0.
Spec: gradients G2, G3, G5, G11, G12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from osprey_py.graph.buffer import Buffer
from osprey_py.graph.entries import (
    Accumulated,
    Concatenated,
    Entry,
    Filtered,
    Gathered,
    Got,
    Launched,
    Operated,
    Passed,
    Read,
    Sliced,
    Value,
)
from osprey_py.graph.kernels import (
    ADD,
    FROM_ZERO,
    GATHER,
    IOTA,
    OFFSET,
    PLACED,
    SPREAD,
    constant_kernel,
    count_kernel,
    row_kernel,
)
from osprey_py.graph.stand_ins import TapeFloat, split
from osprey_py.graph.symbols import concrete
from osprey_py.kernel.derive.derive import recipe, structural
from osprey_py.kernel.derive.recipe import Adjoint, Dense, Given, Input, Made, Recipe, Ref, Result, Scattered
from osprey_py.kernel.ir import INT, Kernel
from osprey_py.source.diagnostic import Label, OspreyError
from osprey_py.source.span import NO_SPAN, Span

Int = Any

ROW = 32
"""Floats of the host that one launch puts side by side."""


def backward(runtime: Any, entries: list[Entry], result: Value) -> None:
    """Gather the adjoints of all values that the result was computed of. The entries are used up."""
    run = _Backward(runtime)
    result.adjoint = runtime.map(constant_kernel(1.0), (), (), 1)
    result.exact = True
    while entries:
        run.entry(entries.pop())


def gradient_of(runtime: Any, value: Value, length: Int) -> Buffer:
    """The adjoint of a parameter, every element from 0.0 (G12)."""
    adjoint, exact = value.take()
    if adjoint is None:
        zeros: Buffer = runtime.map(constant_kernel(0.0), (), (), length)
        return zeros
    return adjoint if exact else _from_zero(runtime, adjoint)


def _from_zero(runtime: Any, adjoint: Buffer) -> Buffer:
    made: Buffer = runtime.map(FROM_ZERO, (adjoint,), (), adjoint.length)
    return made


class _Backward:
    """runtime: where launches are made; a recording perhaps."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime

    def entry(self, e: Entry) -> None:
        """Hand the adjoint of what the entry made on to what it read; nothing when it has none (G5)."""
        if isinstance(e, Read):
            self._read(e)
            return
        adjoint, exact = e.result.take()
        if adjoint is None:
            return
        runtime = self.runtime
        match e:
            case Launched():
                self._carried_out(e.op, e.kernel, e.inputs, e.sources, e.uniforms, e.made, adjoint, e.span)
            case Operated():
                self._operated(e, adjoint)
            case Passed():
                self.add(e.source, adjoint, exact)
            case Concatenated():
                middle = e.left_length
                if e.right is not None:
                    end = middle + e.right_length
                    self.add(e.right, runtime.slice(adjoint, middle, end, e.span), exact)
                if e.left is not None:
                    self.add(e.left, runtime.slice(adjoint, 0, middle, e.span), exact)
            case Sliced():
                self._sliced(e, adjoint, exact)
            case Filtered():
                n = e.inputs[0].length
                counts = runtime.scan(count_kernel(e.kernel), e.inputs, e.uniforms, n, e.span)
                self.add(e.source, runtime.map(SPREAD, (adjoint, counts), (), n, e.span), exact)
            case Accumulated():
                self.add(e.source, runtime.map(GATHER, (adjoint, e.indices), (), e.length, e.span), exact)
            case Gathered():
                self._gathered(e, adjoint, exact)
            case Got():
                self.scatter(e.source, e.of, runtime.from_list([e.i], INT), adjoint, NO_SPAN)

    # --- adding -------------------------------------------------------------------------------------------------

    def add(self, value: Value, subtotal: Buffer, exact: bool, span: Span = NO_SPAN) -> None:
        """One more subtotal for every element. exact: no element of it is -0.0."""
        if value.adjoint is None:
            value.adjoint, value.exact = subtotal, exact
            return
        before, value.adjoint = value.adjoint, None
        value.adjoint = self.runtime.map(ADD, (before, subtotal), (), subtotal.length, span)
        value.exact = value.exact or exact

    def scatter(self, value: Value, length: Int, indices: Buffer, values: Buffer, span: Span) -> None:
        """One more subtotal, of the elements at the indices: where nothing is added there, nothing changes."""
        base, value.adjoint = value.adjoint, None
        if base is not None and not value.exact:
            base = _from_zero(self.runtime, base)
        value.adjoint = self.runtime.accumulate(length, indices, values, span, base)
        value.exact = True

    # --- entries ------------------------------------------------------------------------------------------------

    def _carried_out(
        self,
        op: Literal["map", "scan"],
        kernel: Kernel,
        inputs: tuple[Buffer, ...],
        sources: tuple[Value | None, ...],
        uniforms: tuple[Any, ...],
        made: Buffer | TapeFloat,
        adjoint: Buffer,
        span: Span,
    ) -> None:
        """The recipe of a launch."""
        runtime = self.runtime
        lengths = tuple([concrete(b.length) for b in inputs])
        n = concrete(adjoint.length)
        iotas = tuple([k for k, b in enumerate(inputs) if b.node.kernel is IOTA])
        found = _recipe(op, kernel, sources, lengths, uniforms, n, iotas, span)
        results: list[Buffer] = []

        def ref(r: Ref) -> Buffer:
            match r:
                case Input(k):
                    return inputs[k]
                case Adjoint():
                    return adjoint
                case Made(j):
                    return results[j]
                case Result():
                    return made.buffer() if isinstance(made, TapeFloat) else made

        for m in found.makes:
            given = tuple([uniforms[u.k] if isinstance(u, Given) else u for u in m.uniforms])
            launch = runtime.map if m.op == "map" else runtime.scan
            results.append(launch(m.kernel, tuple([ref(r) for r in m.inputs]), given, m.length, span))
        for slot, subtotal in found.subtotals:
            source = sources[slot]
            assert source is not None
            match subtotal:
                case Dense(values, exact):
                    self.add(source, ref(values), exact, span)
                case Scattered(indices, values):
                    self.scatter(source, lengths[slot], ref(indices), ref(values), span)

    def _operated(self, e: Operated, adjoint: Buffer) -> None:
        floats, numbers = split(e.operands)
        inputs = tuple([x.buffer() for x in floats])
        sources = tuple([x.value for x in floats])
        self._carried_out("map", e.kernel, inputs, sources, numbers, e.made, adjoint, NO_SPAN)

    def _sliced(self, e: Sliced, adjoint: Buffer, exact: bool) -> None:
        """Zeros around it, or, where it is little of the whole, added in its place."""
        if e.source.adjoint is not None and concrete(e.length) * 8 < concrete(e.of):
            places = self.runtime.map(OFFSET, (), (e.begin,), e.length, e.span)
            self.scatter(e.source, e.of, places, adjoint, e.span)
        else:
            self.add(e.source, self.runtime.map(PLACED, (adjoint,), (e.begin,), e.of, e.span), exact)

    def _gathered(self, e: Gathered, adjoint: Buffer, exact: bool) -> None:
        """One site: of each float the elements that it became, ascending, from 0.0."""
        places: dict[Value, list[int]] = {}
        for k, source in enumerate(e.sources):
            if source is not None:
                places.setdefault(source, []).append(k)
        for source, ks in places.items():
            total = self.runtime.slice(adjoint, ks[0], ks[0] + 1)
            for k in ks[1:]:
                total = self.runtime.map(ADD, (total, self.runtime.slice(adjoint, k, k + 1)), (), 1)
            self.add(source, total, exact)

    def _read(self, e: Read) -> None:
        """What the floats that a buffer was read into have gathered, 0.0 for those that have nothing."""
        taken = [value.take() for value in e.results]
        if all(adjoint is None for adjoint, _ in taken):
            return
        runtime = self.runtime
        zero = runtime.map(constant_kernel(0.0), (), (), 1)
        parts = [zero if adjoint is None else adjoint for adjoint, _ in taken]
        whole: Buffer | None = None
        for begin in range(0, len(parts), ROW):
            some = tuple(parts[begin : begin + ROW])
            row = runtime.map(row_kernel(len(some)), some, (), len(some))
            whole = row if whole is None else runtime.concat(whole, row)
        assert whole is not None
        self.add(e.source, whole, all(exact for adjoint, exact in taken if adjoint is not None))


def _recipe(
    op: Literal["map", "scan"],
    kernel: Kernel,
    sources: Sequence[Value | None],
    lengths: tuple[int, ...],
    uniforms: tuple[Any, ...],
    n: int,
    iotas: tuple[int, ...],
    span: Span,
) -> Recipe:
    """What kernel/derive says of a launch. It may look at the scalars that addresses depend on; the recipe holds for any
    others. What has no gradient is told with the launch."""
    fixed = structural(kernel)
    known = tuple([concrete(u) if k in fixed else None for k, u in enumerate(uniforms)])
    active = tuple([k for k, v in enumerate(sources) if v is not None])
    try:
        return recipe(op, kernel, active, lengths, known, n, iotas)
    except OspreyError as refused:
        label = Label(span, "launched here")
        raise OspreyError([replace(d, labels=(*d.labels, label)) for d in refused.diagnostics]) from None
