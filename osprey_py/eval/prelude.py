"""The helpers that generated code names: one dict, copied into every module's namespace.

Comes in: the evaluator's run-time modules. Goes out: PRELUDE. Importing it also fills eval/registry.BUILTINS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from osprey_py.eval import arithmetic, handlers, library, values, world
from osprey_py.eval.equality import equal
from osprey_py.eval.formatting import to_string
from osprey_py.eval.library import lists, maps, text
from osprey_py.eval.library.absent import ABSENT
from osprey_py.eval.pipelines import elements
from osprey_py.eval.values import Error, Iterator, List, Map, Success, make_list
from osprey_py.kernel.fault import MathFault


def _unwrap(v: Any) -> Any:
    """For `?:` in generic code: what a Success holds, ABSENT for an Error, a scalar as it is."""
    cls = v.__class__
    return v.f_value if cls is Success else ABSENT if cls is Error else v


def _index_any(container: Any, at: Any) -> Any:
    """Indexing where the container's type is a variable."""
    cls = container.__class__
    return (
        lists.index(container, at)
        if cls is List
        else maps.get(container, at)
        if cls is Map
        else text.index(container, at)
    )


def _evaluated(v: Any) -> Any:
    """A pipeline with its stages run."""
    return Iterator(make_list(list(elements(v)))) if type(v) is Iterator and v.stages else v


def _forced(body: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: _evaluated(body())


PRELUDE: dict[str, Any] = {
    "_MathFault": MathFault,
    "_overflow": arithmetic.overflow,
    "_by_zero": arithmetic.by_zero,
    "_remainder": arithmetic.remainder,
    "_int_div": arithmetic.int_div,
    "_float_remainder": arithmetic.float_remainder,
    "_add": arithmetic.add,
    "_subtract": arithmetic.subtract,
    "_multiply": arithmetic.multiply,
    "_divide": arithmetic.divide,
    "_modulo": arithmetic.modulo,
    "_negate": arithmetic.negate,
    "_equal": equal,
    "_to_string": to_string,
    "_make_list": values.make_list,
    "_make_map": values.make_map,
    "_drop_front": values.drop_front,
    "_update": values.update,
    "_Success": Success,
    "_Error": Error,
    "_ABSENT": ABSENT,
    "_unwrap": _unwrap,
    "_Cell": world.Cell,
    "_TailCall": world.TailCall,
    "_too_deep": world.too_deep,
    "_find": handlers.find,
    "_Handler": handlers.Handler,
    "_run_handler": handlers.run,
    "_Resumption": handlers.Resumption,
    "_evaluated": _evaluated,
    "_forced": _forced,
    "_index_any": _index_any,
    "_index_list": lists.index,
    "_index_map": maps.get,
    "_index_text": text.index,
    "_list_item": lists.item,
    "_map_item": maps.item,
    "_text_item": text.item,
    "_byte_item": text.byte_item,
    "_code_point_item": text.code_point_item,
    "_minus_inf": -math.inf,
}
assert library.FAMILIES
