"""The built-ins, one module a family. Importing this package registers them all (eval/registry.py)."""

from __future__ import annotations

from osprey_py.eval.library import files, gpu, gradients, json, lists, maps, scalars, structures, tests, text, unicode

FAMILIES = (files, gpu, gradients, json, lists, maps, scalars, structures, tests, text, unicode)
