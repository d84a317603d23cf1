"""LLVM text in, callable machine code out.

Comes in: the text of one LLVM module and the names of the functions wanted. Goes out: a `Library` with their
addresses.

Floating point keeps spec/numerics: no fast-math flag is ever written, and the target machine is created without
any, so the code generator never contracts a multiply and an add. Only SROA runs before code generation: the
emitters write the code they want, and the full pipelines cost ten times the compile time at no gain."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

import llvmlite.binding as llvm

from osprey_py.backends.host import objects

_names = count()


class Library:
    """Machine code in memory, alive as long as this object. addresses: of the exported functions."""

    def __init__(self, tracker: object, addresses: dict[str, int]) -> None:
        self._tracker = tracker
        self.addresses = addresses


class Machine:
    """The host CPU: the target machine and the JIT. lanes: of the widest vector of doubles that is worth using.
    f16c: it converts binary16 by itself. fma: it has fused operations, which only exp, ln and tanh use."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.cpu: str = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features()
        self.features: str = features.flatten()
        self.lanes = 8 if features.get("avx512f") and features.get("avx512dq") else 4 if features.get("avx2") else 2
        target = llvm.Target.from_default_triple()
        self._tm = target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel="default", jit=True
        )
        self.triple: str = self._tm.triple
        self.f16c = bool(features.get("f16c")) or self.triple.startswith(("aarch64", "arm64"))
        self.fma = bool(features.get("fma")) or self.triple.startswith(("aarch64", "arm64"))
        self._jit = llvm.create_lljit_compiler(
            target.create_target_machine(
                cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel="default", jit=True
            )
        )

    def object_code(self, text: str) -> bytes:
        """Compile without any cache."""
        return bytes(self._tm.emit_object(self._module(text)))

    def assembly(self, text: str) -> str:
        """The machine code as text, for people and for tests that count instructions."""
        return str(self._tm.emit_assembly(self._module(text)))

    def _module(self, text: str) -> llvm.ModuleRef:
        """The module for this machine, verified, its stack slots made registers."""
        module = llvm.parse_assembly(text)
        module.verify()
        module.triple = self.triple
        module.data_layout = str(self._tm.target_data)
        builder = llvm.create_pass_builder(self._tm, llvm.create_pipeline_tuning_options(speed_level=0))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, builder)
        return module

    def load(self, text: str, exports: tuple[str, ...]) -> Library:
        """Compile (or take from the object cache) and link into this process, the C library's functions in sight."""
        return self.load_made(text, lambda: text, exports)

    def load_made(self, name: str, make: Callable[[], str], exports: tuple[str, ...]) -> Library:
        """The same for text that is slow to make: it is made only when the cache has nothing under the name, which
        must say all that decides the text."""
        key = objects.key(name, self.triple, self.cpu, self.features)
        code = objects.fetch(key)
        if code is not None:
            try:
                return self._link(code, exports)
            except RuntimeError:  # not an object file after all: compile it again
                pass
        code = self.object_code(make())
        objects.keep(key, code)
        return self._link(code, exports)

    def _link(self, code: bytes, exports: tuple[str, ...]) -> Library:
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in exports:
            builder.export_symbol(name)
        tracker = builder.link(self._jit, f"osprey{next(_names)}")
        return Library(tracker, {name: int(tracker[name]) for name in exports})


@cache
def machine() -> Machine:
    """The one machine of this process, made at first use."""
    return Machine()
