"""Osprey for Python: a pure functional language whose kernels give the same bytes everywhere."""

__version__ = "0.1.0"

CONTRACT_VERSION = "1"
"""Version of the numerical contract. A byte that changes is a new version (see spec/numerics.md)."""
