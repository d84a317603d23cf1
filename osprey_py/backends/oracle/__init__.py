"""The specification, executable: each kernel as a plain Python loop, no cleverness."""

from osprey_py.backends.oracle.backend import OracleBackend, evaluate_element, find_fault, run_step

__all__ = ["OracleBackend", "evaluate_element", "find_fault", "run_step"]
