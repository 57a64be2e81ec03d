"""Kernels whose machine code is read from files, without importing numba, which takes longer than
reading a small file. Decision: docs/decisions/0023-kernels-without-numba.md.

If no file is kept for a kernel and the types of its arguments, numba makes one. LLVM, 40 MiB of a
process, is loaded when a kernel is first called.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache, cached_property
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from llvmlite import __version__ as llvmlite_version

from kafkalog.columns.jit import announce_compiling
from kafkalog.columns.jit.kernel_files import (
    code_name,
    fingerprint,
    keep_code,
    kept_code,
    unless_changed,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_C_TYPES: dict[str, Any] = {
    "q": ctypes.c_int64,
    "i": ctypes.c_int32,
    "b": ctypes.c_bool,
    "P": ctypes.c_void_p,
}


class StoredKernel:
    """A kernel, or with `is_inlined` a part of kernels; `borrowed` names one of numba_kernels."""

    def __init__(
        self, function: Callable[..., Any], *, is_inlined: bool = False, borrowed: str = ""
    ) -> None:
        self._function: Any = function
        self._is_inlined = is_inlined
        self._borrowed = borrowed
        self._calls: dict[object, Any] = {}
        self.__name__ = borrowed or self._function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        key = tuple(map(_kind, arguments))
        if key not in self._calls:
            stored = unless_changed(lambda: self._stored(key, arguments))
            self._calls[key] = stored or self._callable_by_numba
        return self._calls[key](*arguments)

    def _stored(self, key: object, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
        """Return the kernel for arguments of these types; None if only numba can call it."""
        name = code_name(self.__name__, self.fingerprint, key, _processor(), llvmlite_version)
        kept = kept_code(name)
        if kept is None:
            announce_compiling()
            from kafkalog.columns.jit.numba_kernels import object_code

            made = object_code(self.dispatcher, arguments, _letters(arguments))
            if made is None:
                return None
            kept = f"{made.symbol} {made.returned}\n".encode() + made.code
            keep_code(name, kept)
        line, _, code = kept.partition(b"\n")
        symbol, _, returned = line.decode().partition(" ")
        return _called(_address(code, symbol), returned, arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """The kernel as numba compiles it."""
        from kafkalog.columns.jit import numba_kernels

        if self._borrowed:
            return getattr(numba_kernels, self._borrowed)
        if self._is_inlined:
            return numba_kernels.inlined_kernel(self._for_numba())
        return numba_kernels.kernel_to_store(self._for_numba())

    @cached_property
    def _callable_by_numba(self) -> Any:
        from kafkalog.columns.jit import numba_kernels

        return numba_kernels.kernel(self._for_numba())

    def _for_numba(self) -> Any:
        """Return the function with numba's kernels in place of these."""
        code = self._function.__code__
        known = dict(self._function.__globals__)
        for name in code.co_names:
            if isinstance(known.get(name), StoredKernel):
                known[name] = known[name].dispatcher
        function = FunctionType(code, known, self.__name__, self._function.__defaults__)
        function.__module__ = self._function.__module__
        return function

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the machine code is made of."""
        return self._borrowed + fingerprint(self._function)


def kernel(function: _Function) -> _Function:
    """Return a function over arrays of bytes and integers, as machine code that is kept on disk."""
    return StoredKernel(function)  # type: ignore[return-value]


def inlined_kernel(function: _Function) -> _Function:
    """Return a kernel that becomes part of each kernel that calls it."""
    return StoredKernel(function, is_inlined=True)  # type: ignore[return-value]


# Change these names with the functions: their code is in no fingerprint.
copy_bytes = StoredKernel(lambda: None, borrowed="copy_bytes")
prefetch = StoredKernel(lambda: None, borrowed="prefetch")


def _kind(argument: Any) -> object:
    """Return what machine code depends on in an argument's type."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.char, argument.ndim, argument.flags.c_contiguous
    if isinstance(argument, tuple):
        return type(argument).__name__, *map(_kind, argument)
    if isinstance(argument, bool | np.bool_):
        return bool
    if isinstance(argument, int | np.integer):
        return int
    raise TypeError(f"no kernel takes {type(argument)}")


def _flat(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the arguments as numba's calling convention passes them: for an array two null
    pointers, its size, the bytes of an element, its address, its shape and its strides."""
    flat: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            place = argument.__array_interface__["data"][0]
            flat += (None, None, argument.size, argument.itemsize, place)
            flat += argument.shape
            flat += argument.strides
        elif isinstance(argument, tuple):
            flat += _flat(argument)
        else:
            flat.append(argument)
    return flat


def _letters(arguments: tuple[Any, ...]) -> str:
    """Return a letter of _C_TYPES for each part of the arguments, in the order of `_flat`."""
    letters = ""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            letters += "PPqqP" + "q" * 2 * argument.ndim
        elif isinstance(argument, tuple):
            letters += _letters(argument)
        else:
            letters += "b" if isinstance(argument, bool | np.bool_) else "q"
    return letters


def _called(address: int, returned: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the machine code as a Python function for arguments of these types."""
    given = [_C_TYPES[letter] for letter in _letters(arguments)]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *given)
    machine_code = prototype(address)
    fields = [(f"part{index}", _C_TYPES[letter]) for index, letter in enumerate(returned or "q")]
    result_type = type("Result", (ctypes.Structure,), {"_fields_": fields})

    def call(*arguments: Any) -> Any:
        result, raised = result_type(), ctypes.c_void_p()
        if machine_code(ctypes.addressof(result), ctypes.addressof(raised), *_flat(arguments)):
            raise ArithmeticError("a kernel divided by zero")
        parts = tuple(getattr(result, name) for name, _ in fields)
        return parts if len(returned) > 1 else parts[0] if returned else None

    return call


@cache
def _processor() -> str:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{platform.machine()} {llvm.get_host_cpu_name()} {features}"


# Code is unloaded with its engine.
_engines: list[Any] = []


def _address(code: bytes, symbol: str) -> int:
    """Load an object file. Return the address of a function in it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # The engine owns its machine. Each file has an engine, for names repeat in files.
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))
