"""The text of a kernel's module and the numbers it reads. Imported when there is code to make, which a warm object cache
spares: the emitters and the expansions of exp, ln and tanh take longer to load than machine code does."""

from __future__ import annotations

from osprey_py.backends.host import accumulate, launch, vectors
from osprey_py.backends.host.widths import SCALAR, Widths
from osprey_py.backends.prepare import prepare, prepare_shape
from osprey_py.backends.protocol import Kind, StepOp
from osprey_py.kernel.faults import Lowered
from osprey_py.kernel.nest import Number, Shape


def plain(op: StepOp, kernel: Lowered | None, kinds: tuple[Kind, ...]) -> tuple[str, list[Number]]:
    """Code that relies on nothing; of an accumulate step without a kernel."""
    if kernel is None:
        return accumulate.module_text(kinds), []
    return launch.module_text(op, prepare(kernel), kinds)


def shaped(op: StepOp, shape: Shape, kinds: tuple[Kind, ...], how: Widths) -> tuple[str, list[Number]]:
    """Code for launches of one shape: vectors for a map of more than one element, unless there are to be none."""
    shape = prepare_shape(shape)
    if op != "map" or not shape.digits or how == SCALAR:
        return launch.module_text(op, shape.kernel, kinds, shape)
    return vectors.module_text(shape, kinds, how)
