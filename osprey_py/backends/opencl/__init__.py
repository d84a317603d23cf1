"""The OpenCL backend: any vendor's device with binary64; PoCL where there is no graphics processor."""

from osprey_py.backends.opencl.backend import OpenCLBackend

__all__ = ["OpenCLBackend"]
