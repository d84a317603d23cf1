"""The CUDA backend: NVIDIA's devices through the driver, kernels compiled by NVRTC."""

from osprey_py.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
