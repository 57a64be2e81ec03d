"""Kernels as machine code: with `stored_kernels`, the one place that names numba and llvmlite, and
the few things only machine code can do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import config, from_dtype, njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from kafkalog.columns.kernel_cache import is_kept_by_numba, own_directory

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Reference counting is off: it makes a loop over bytes ten times slower, and kernels allocate
# nothing that would need it.
_OPTIONS = {"nogil": True, "_nrt": False}

# Where nothing can be kept, each process compiles anew.
_is_kept = is_kept_by_numba(__file__)
if not _is_kept and os.path.isfile(__file__):
    config.CACHE_DIR = own_directory() or ""  # type: ignore[attr-defined]
    _is_kept = bool(config.CACHE_DIR)  # type: ignore[attr-defined]


def kernel(function: _Function) -> _Function:
    """A function over arrays of bytes and integers, compiled once and kept on disk."""
    compiled: _Function = njit(cache=_is_kept, **_OPTIONS)(function)  # type: ignore[call-overload]
    return compiled


def inlined_kernel(function: _Function) -> _Function:
    """A kernel that becomes part of each kernel that calls it: a call would have to hand
    over every array field by field."""
    compiled: _Function = njit(inline="always", **_OPTIONS)(function)  # type: ignore[call-overload]
    return compiled


def kernel_to_store(function: _Function) -> _Function:
    """A kernel that numba keeps nowhere, and that Python cannot call."""
    unwrapped = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: _Function = njit(**_OPTIONS, **unwrapped)(function)  # type: ignore[call-overload]
    return compiled


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def _memcpy(typing_context, target, target_start, source, source_start, size):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        from_ = _pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        cgutils.raw_memcpy(builder, to, from_, arguments[4], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(target, target_start, source, source_start, size), generate


@intrinsic
def _prefetch(typing_context, data, index):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        flag = ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag]),
            "llvm.prefetch.p0",
        )
        for_reading, in_all_caches, of_data = flag(0), flag(3), flag(1)
        builder.call(function, [pointer, for_reading, in_all_caches, of_data])
        return context.get_dummy_value()

    return types.void(data, index), generate


@kernel
def copy_bytes(
    target: NDArray[np.uint8],
    target_start: int,
    source: NDArray[np.uint8],
    source_start: int,
    size: int,
) -> None:
    """Copy `size` bytes, by the machine's memcpy rather than one by one."""
    _memcpy(target, target_start, source, source_start, size)  # type: ignore[call-arg]


@kernel
def prefetch(data: NDArray[np.uint8], index: int) -> None:
    """Tell the processor that data[index] is needed soon; any index is allowed."""
    _prefetch(data, index)  # type: ignore[call-arg]


class ObjectCode(NamedTuple):
    """An object file with a function `symbol` of numba's calling convention, and a letter for each
    integer that it returns: `q` of 64 bits, `i` of 32, `b` a boolean."""

    code: bytes
    symbol: str
    returned: str


_LETTERS = {types.int64: "q", types.int32: "i", types.boolean: "b"}


def object_code(dispatcher: Any, arguments: tuple[Any, ...]) -> ObjectCode | None:
    """A kernel compiled for arguments of such types, whether their arrays can be written or not;
    None where it needs more than a process without numba has."""
    signature = tuple(_type_of(argument) for argument in arguments)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    returned = compiled.signature.return_type
    parts = () if returned == types.none else getattr(returned, "types", (returned,))
    library = compiled.library
    needed = [f.name for f in library._final_module.functions if f.is_declaration]
    if not all(name.startswith("llvm.") for name in needed):
        return None
    if not all(part in _LETTERS for part in parts):
        return None
    letters = "".join(_LETTERS[part] for part in parts)
    return ObjectCode(library._get_compiled_object(), compiled.fndesc.llvm_func_name, letters)


def _type_of(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        element = from_dtype(argument.dtype)
        if argument.flags.c_contiguous:
            return types.Array(element, argument.ndim, "C")
        return types.Array(element, argument.ndim, "A")
    if isinstance(argument, tuple):
        parts = [_type_of(part) for part in argument]
        return types.BaseTuple.from_types(parts, pyclass=type(argument))  # type: ignore[no-untyped-call]
    return types.boolean if isinstance(argument, bool | np.bool_) else types.int64
