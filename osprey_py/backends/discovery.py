"""Which devices there are: the entry points of the group `osprey.backends`, this package's own among them.

Comes in: a name, as `--device` gives it: NAME, or NAME:WHICH where a backend has several devices. Goes out: the
`Backend`, or Unusable with the reason. An entry point names a callable without arguments, or with WHICH, that gives
the backend; it may have a member `choices`, a callable that lists each WHICH (docs/backends.md).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from osprey_py.backends.protocol import Backend, Unusable

GROUP = "osprey.backends"
OWN = {
    "host": "osprey_py.backends.host:HostBackend",
    "oracle": "osprey_py.backends.oracle:OracleBackend",
    "opencl": "osprey_py.backends.opencl:OpenCLBackend",
    "cuda": "osprey_py.backends.cuda:CudaBackend",
}
"""What is here even where the package's metadata is not installed."""

Factory = Callable[..., Backend]


class NoSuchDevice(Exception):
    """No backend has this name."""


def names() -> list[str]:
    """Every backend that is installed, in alphabetical order."""
    return sorted({*OWN, *(e.name for e in entry_points(group=GROUP))})


def factory(name: str) -> Factory:
    """What makes the backend. Raises NoSuchDevice, or Unusable when its code cannot be loaded."""
    try:
        for entry in entry_points(group=GROUP, name=name):
            made: Factory = entry.load()
            return made
        if name in OWN:
            module, member = OWN[name].split(":")
            own: Factory = getattr(import_module(module), member)
            return own
    except (ImportError, AttributeError) as error:
        raise Unusable(f"its code cannot be loaded: {error}") from None
    raise NoSuchDevice(name)


def choices(name: str) -> list[str]:
    """The devices of a backend, as `--device` names them."""
    listed = getattr(factory(name), "choices", None)
    several = [] if listed is None else list(listed())
    return [f"{name}:{which}" for which in several] if len(several) > 1 else [name]


def open_device(device: str) -> Backend:
    """The backend called so. Raises NoSuchDevice, or Unusable with the reason."""
    name, colon, which = device.partition(":")
    make = factory(name)
    return make(which) if colon else make()
