"""Kernels as C: one renderer for the dialects of C that devices compile (OpenCL C, CUDA C)."""
