"""Kernels whose machine code is read from files, without numba, which takes longer to import and to
prepare than a small file to read. Decision: docs/decisions/0023-kernels-without-numba.md.

What a file is for stands in its name: a hash of the kernel, of all it calls, of the constants they
use, of the types of its arguments, and of the processor. Where there is none, numba makes one.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from types import FunctionType
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numpy as np
from llvmlite import __version__ as llvmlite_version
from numpy.typing import NDArray

from kafkalog.columns.jit.kernel_files import code_name, keep_code, kept_code
from kafkalog.columns.jit.kernel_fingerprint import fingerprint

_Function = TypeVar("_Function", bound=Callable[..., Any])
_C_TYPES: dict[str, Any] = {
    "q": ctypes.c_int64,
    "i": ctypes.c_int32,
    "b": ctypes.c_bool,
    "P": ctypes.c_void_p,
}


class StoredKernel:
    """A kernel, or with `is_inlined` a part of kernels; `borrowed` is one that numba_kernels has
    ready."""

    def __init__(
        self, function: Callable[..., Any], *, is_inlined: bool = False, borrowed: str = ""
    ) -> None:
        self._function: Any = function
        self._is_inlined = is_inlined
        self._borrowed = borrowed
        self._calls: dict[object, Any] = {}
        self.__name__ = self._function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        key = tuple(map(_kind, arguments))
        if key not in self._calls:
            self._calls[key] = self._found(key, arguments)
        return self._calls[key](*arguments)

    def _found(self, key: object, arguments: tuple[Any, ...]) -> Any:
        name = code_name(self.__name__, self.fingerprint, key, _processor(), llvmlite_version)
        kept = kept_code(name)
        if kept is None:
            from kafkalog.columns.jit.numba_kernels import object_code

            made = object_code(self.dispatcher, arguments)
            if made is None:
                return self._callable_by_numba
            kept = f"{made.symbol} {made.returned}\n".encode() + made.code
            keep_code(name, kept)
        line, _, code = kept.partition(b"\n")
        symbol, _, returned = line.decode().partition(" ")
        return _called(_address(code, symbol), returned, arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """The kernel as numba has it."""
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
        """The function with numba's kernels in place of these."""
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
        """What the machine code is made of."""
        return self._borrowed + fingerprint(self._function)


def kernel(function: _Function) -> _Function:
    """A function over arrays of bytes and integers, as machine code that is kept on disk."""
    return StoredKernel(function)  # type: ignore[return-value]


def inlined_kernel(function: _Function) -> _Function:
    """A kernel that becomes part of each kernel that calls it."""
    return StoredKernel(function, is_inlined=True)  # type: ignore[return-value]


def _of_numba(function: _Function) -> _Function:
    return StoredKernel(function, borrowed=function.__name__)  # type: ignore[return-value]


@_of_numba
def copy_bytes(
    target: NDArray[np.uint8],
    target_start: int,
    source: NDArray[np.uint8],
    source_start: int,
    size: int,
) -> None:
    """Copy `size` bytes, by the machine's memcpy rather than one by one."""


@_of_numba
def prefetch(data: NDArray[np.uint8], index: int) -> None:
    """Tell the processor that data[index] is needed soon; any index is allowed."""


def _kind(argument: Any) -> object:
    """All of an argument's type that machine code goes by."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.char, argument.ndim, argument.flags.c_contiguous
    if isinstance(argument, tuple):
        return type(argument).__name__, *map(_kind, argument)
    if isinstance(argument, bool | np.bool_):
        return bool
    if isinstance(argument, int | np.integer):
        return int
    raise TypeError(f"no kernel takes {type(argument)}")


def _flat(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments as numba's calling convention has them: of an array two objects that own
    nothing, its size, the bytes of an element, its place, its shape and its strides."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            place = argument.__array_interface__["data"][0]
            yield from (None, None, argument.size, argument.itemsize, place)
            yield from argument.shape
            yield from argument.strides
        elif isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield argument


def _c_types(arguments: tuple[Any, ...]) -> str:
    """A letter of _C_TYPES for each of them."""
    letters = ""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            letters += "PPqqP" + "q" * 2 * argument.ndim
        elif isinstance(argument, tuple):
            letters += _c_types(argument)
        else:
            letters += "b" if isinstance(argument, bool | np.bool_) else "q"
    return letters


def _called(address: int, returned: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The machine code as a function of Python, for arguments such as these."""
    given = [_C_TYPES[letter] for letter in _c_types(arguments)]
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
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine()


@cache
def _processor() -> str:
    features = llvm.get_host_cpu_features().flatten()
    return f"{platform.machine()} {llvm.get_host_cpu_name()} {features}"


# What holds the loaded code: it is unloaded with them.
_engines: list[Any] = []


def _address(code: bytes, symbol: str) -> int:
    """Where a function of an object file lies, once that is loaded."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))
