"""The GPU surface on the host: a kernel is extracted from its closure, and launched (spec/gpu).

Comes in: closures, buffers, scalars, the span of the call. Goes out: buffers that may be pending, Results.
Every launch is `kernel, buffers, scalars = extractor.…(closure, …)`, then one call of the runtime. Lengths are read
with `.length`, which is a symbol while a function is recorded (eval/replay.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from osprey_py.check.types import Named, Type
from osprey_py.eval.library.absent import ABSENT
from osprey_py.eval.pipelines import Source, elements
from osprey_py.eval.registry import builtin
from osprey_py.eval.values import Error, List, Success, make_list, make_map
from osprey_py.eval.world import World
from osprey_py.graph.buffer import Buffer
from osprey_py.kernel.ir import BOOL, FLOAT, INT, Ty
from osprey_py.source.diagnostic import Label, OspreyError
from osprey_py.source.span import Span
from osprey_py.tensors.safetensors import TensorError, open_tensors, save_tensors

_TYPES = {"int": INT, "float": FLOAT, "bool": BOOL}


def element_type(values: list[Any], t: Type) -> Ty:
    """Of a buffer made of values whose static type is t = GpuBuffer<T>: what the values are, or T when there are
    none."""
    if values:
        v = values[0]
        return BOOL if type(v) is bool else INT if type(v) is int else FLOAT
    if isinstance(t, Named) and t.args and isinstance(t.args[0], Named):
        return _TYPES[t.args[0].name]
    return INT


def _extracted(w: World, span: Span, op: str, *args: Any) -> Any:
    """What the extractor's `op` makes of a launch's closure. What no device can run is told with the launch.
    The extractor is made when the first kernel is, so that programs without one start faster."""
    if w.extractor is None:
        from osprey_py.kernel.extract import Extractor

        w.extractor = Extractor()
    try:
        return getattr(w.extractor, op)(*args)
    except OspreyError as refused:
        label = Label(span, "launched here")
        raise OspreyError([replace(d, labels=(*d.labels, label)) for d in refused.diagnostics]) from None


@builtin("toGpu", world=True, typed=True)
def to_gpu(w: World, xs: Source, t: Type) -> Buffer:
    values = xs.items[xs.lo : xs.hi] if type(xs) is List else list(elements(xs))
    made: Buffer = w.runtime.from_list(values, element_type(values, t))
    return made


@builtin("fromGpu", world=True)
def from_gpu(w: World, b: Buffer) -> List:
    return make_list(w.runtime.read(b))


@builtin("gpuLength")
def gpu_length(b: Buffer) -> int:
    n: int = b.length
    return n


@builtin("gpuIota", world=True, span=True)
def gpu_iota(w: World, n: int, span: Span) -> Buffer:
    made: Buffer = w.runtime.iota(n, span)
    return made


@builtin("gpuMap", world=True, span=True)
def gpu_map(w: World, b: Buffer, k: Any, span: Span) -> Buffer:
    kernel, buffers, scalars = _extracted(w, span, "map", k, (b.type,))
    made: Buffer = w.runtime.map(kernel, (b, *buffers), scalars, b.length, span)
    return made


@builtin("gpuZipWith", world=True, span=True)
def gpu_zip_with(w: World, a: Buffer, b: Buffer, k: Any, span: Span) -> Buffer:
    kernel, buffers, scalars = _extracted(w, span, "map", k, (a.type, b.type))
    made: Buffer = w.runtime.map(kernel, (a, b, *buffers), scalars, min(a.length, b.length), span)
    return made


@builtin("gpuFilter", world=True, span=True)
def gpu_filter(w: World, b: Buffer, k: Any, span: Span) -> Buffer:
    kernel, buffers, scalars = _extracted(w, span, "map", k, (b.type,))
    made: Buffer = w.runtime.filter(kernel, (b, *buffers), scalars, span)
    return made


@builtin("gpuFold", world=True, span=True)
def gpu_fold(w: World, b: Buffer, init: Any, k: Any, span: Span) -> Any:
    kernel, buffers, scalars = _extracted(w, span, "fold", k, b.type, init)
    made = w.runtime.launch_fold(kernel, (b, *buffers), scalars, span)
    del b, k, buffers  # what nobody else holds is computed in the fold
    return w.runtime.first(made)


@builtin("gpuScan", world=True, span=True)
def gpu_scan(w: World, b: Buffer, init: Any, k: Any, span: Span) -> Buffer:
    kernel, buffers, scalars = _extracted(w, span, "scan", k, b.type, init)
    made: Buffer = w.runtime.scan(kernel, (b, *buffers), scalars, b.length, span)
    return made


@builtin("gpuGet", world=True)
def gpu_get(w: World, b: Buffer, i: int) -> Any:
    found = w.runtime.get(b, i)
    return Error("gpuGet: index out of bounds") if found is None else Success(found)


def item(w: World, b: Buffer, i: int) -> Any:
    """Element i, or ABSENT."""
    found = w.runtime.get(b, i)
    return ABSENT if found is None else found


@builtin("gpuMatMul", world=True, span=True)
def gpu_mat_mul(w: World, a: Buffer, b: Buffer, m: int, k: int, n: int, span: Span) -> Any:
    """Row-major [m,k] × [k,n]."""
    if min(m, k, n) < 0:
        return Error(f"gpuMatMul: negative size in [{m},{k}] x [{k},{n}]")
    for name, buffer, rows, cols in (("left", a, m, k), ("right", b, k, n)):
        if buffer.length != rows * cols:
            return Error(
                f"gpuMatMul: the {name} operand has {len(buffer)} elements, and [{rows},{cols}] has {rows * cols}"
            )
    kernel, scalars = _extracted(w, span, "matmul", m, k, n)
    return Success(w.runtime.map(kernel, (a, b), scalars, m * n, span))


@builtin("gpuConcat", world=True, span=True)
def gpu_concat(w: World, a: Buffer, b: Buffer, span: Span) -> Buffer:
    made: Buffer = w.runtime.concat(a, b, span)
    return made


@builtin("gpuSlice", world=True, span=True)
def gpu_slice(w: World, b: Buffer, begin: int, end: int, span: Span) -> Any:
    n = b.length
    if 0 <= begin <= end <= n:
        return Success(w.runtime.slice(b, begin, end, span))
    return Error(f"gpuSlice: {begin} to {end} is not within a length of {n}")


@builtin("gpuAccumulate", world=True, span=True)
def gpu_accumulate(w: World, n: int, indices: Buffer, values: Buffer, span: Span) -> Any:
    if n < 0:
        return Error(f"gpuAccumulate: negative length {n}")
    if indices.length != values.length:
        return Error(f"gpuAccumulate: {len(indices)} indices for {len(values)} values")
    bad = w.runtime.out_of_range(indices, n)
    if bad is not None:
        return Error(f"gpuAccumulate: index {w.runtime.get(indices, bad)} at {bad} is not within a length of {n}")
    return Success(w.runtime.accumulate(n, indices, values, span))


@builtin("gpuDevice", world=True)
def gpu_device(w: World) -> str:
    return str(w.runtime.backend.name)


def buffer_text(b: Any) -> str:
    """A buffer as text: its elements are read by the runtime of the one program that runs in this thread."""
    return f"GpuBuffer({len(b)})" if isinstance(b, Buffer) else f"<{type(b).__name__}>"


# --- tensors -----------------------------------------------------------------------------------------------------


@builtin("gpuLoad", world=True)
def gpu_load(w: World, path: str) -> Any:
    """A file of little-endian binary64, where it is mapped."""
    from osprey_py.eval.library.rawfile import map_floats

    w.runtime.barrier()
    found = map_floats(path)
    return Error(found) if isinstance(found, str) else Success(w.runtime.data(found))


@builtin("gpuLoadTensor", world=True)
def gpu_load_tensor(w: World, path: str, name: str) -> Any:
    w.runtime.barrier()
    try:
        return Success(w.runtime.data(open_tensors(path).read(name)))
    except TensorError as e:
        return Error(f"gpuLoadTensor: {e}")


@builtin("tensorNames", world=True)
def tensor_names(w: World, path: str) -> Any:
    w.runtime.barrier()
    try:
        return Success(make_list(list(open_tensors(path).names)))
    except TensorError as e:
        return Error(f"tensorNames: {e}")


@builtin("tensorShape", world=True)
def tensor_shape(w: World, path: str, name: str) -> Any:
    w.runtime.barrier()
    try:
        return Success(make_list(list(open_tensors(path).shape(name))))
    except TensorError as e:
        return Error(f"tensorShape: {e}")


@builtin("tensorMetadata", world=True)
def tensor_metadata(w: World, path: str) -> Any:
    w.runtime.barrier()
    try:
        return Success(make_map(list(open_tensors(path).metadata.items())))
    except TensorError as e:
        return Error(f"tensorMetadata: {e}")


@builtin("saveTensors", world=True)
def save(w: World, path: str, tensors: List) -> Any:
    w.runtime.barrier()
    try:
        save_tensors(path, [(name, list(shape), w.runtime.storage(b)) for name, shape, b in tensors])
    except TensorError as e:
        return Error(f"saveTensors: {e}")
    return Success(())
