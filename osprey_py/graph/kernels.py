"""The few kernels that the runtime itself launches: iota, and copies of (a part of) a buffer."""

from __future__ import annotations

from functools import cache

from osprey_py.kernel.ir import INT, Kernel, Node, Ty, index, load, uniform, walk

IOTA = Kernel((), (), index(), name="iota")
"""Element i is i."""


@cache
def copy_kernel(ty: Ty) -> Kernel:
    """Element i is element i of the only slot."""
    return Kernel((ty,), (), load(0, ty, index()), name="copy")


@cache
def slice_kernel(ty: Ty) -> Kernel:
    """Element i is element i + u0 of the only slot."""
    return Kernel((ty,), (INT,), load(0, ty, Node("wadd", INT, (index(), uniform(0, INT)))), name="slice")


@cache
def reads_only_at_index(kernel: Kernel) -> frozenset[int]:
    """The slots whose elements a kernel reads at no other place than its own index."""
    elsewhere = {
        n.attr
        for root in (*kernel.roots, *(r for f in kernel.functions for r in f.results))
        for n in walk((root,))
        if n.op == "load" and n.args[0].op != "index"
    }
    return frozenset(s for s in range(len(kernel.slots)) if s not in elsewhere)


@cache
def has_folds(kernel: Kernel) -> bool:
    """Whether an element needs more than a fixed number of operations."""
    return bool(kernel.functions) or any(n.op in ("fold", "loop") for n in walk(kernel.roots))
