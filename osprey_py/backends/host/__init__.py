"""The host backend: native loops through LLVM. See docs/host-backend.md."""

from osprey_py.backends.host.backend import HostBackend

__all__ = ["HostBackend"]
