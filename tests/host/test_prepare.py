"""What the host's own passes make of kernels keeps the rules of the IR (kernel/verify.py)."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from osprey_py.backends.prepare import prepare, prepare_shape
from osprey_py.kernel.faults import lower
from osprey_py.kernel.ir import FLOAT, Kernel, index, load, walk
from osprey_py.kernel.nest import Nest
from osprey_py.kernel.verify import verify
from osprey_py.numerics.expand import EXPANSIONS
from tests.fuzz.kernels import Launch, launches
from tests.host.arrays import arrays, op

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(launches(general=True))
def test_prepared_kernels_keep_the_rules(launch: Launch) -> None:
    prepared = prepare(lower(launch.kernel))
    verify(prepared, expanded=True)
    assert not {n.op for n in walk(prepared.roots)} & set(EXPANSIONS)


@SETTINGS
@given(arrays())
def test_the_kernel_of_a_shape_reads_what_is_in_range(launch: Launch) -> None:
    """Every load that is said to need no check is one of the kernel's, and digits are all that its sums read."""
    nest = Nest(lower(launch.kernel))
    facts = nest.facts([s.length for s in launch.inputs], launch.uniforms, launch.n)
    shape = prepare_shape(nest.shape(facts))
    nodes = set(walk(shape.kernel.roots))
    assert {n.op for n in shape.in_range} <= {"load"}
    assert nest.key(facts) == nest.shape(facts).key
    assert not {n.op for n in nodes} & {"index", *EXPANSIONS}


def test_equal_nodes_become_one() -> None:
    x = [load(0, FLOAT, index()) for _ in range(4)]
    kernel = Kernel((FLOAT,), (), op("fadd", FLOAT, op("fmul", FLOAT, x[0], x[1]), op("fmul", FLOAT, x[2], x[3])))
    assert sum(n.op in ("load", "fmul") for n in walk(prepare(lower(kernel)).roots)) == 2
