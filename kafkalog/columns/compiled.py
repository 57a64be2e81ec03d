"""The one place that names numba: what makes a kernel, and the few things only machine code can do.

With the environment variable KAFKALOG_KERNELS=plain the kernels stay ordinary Python functions:
slow, and open to a debugger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.kernel_cache import is_kept_by_numba, own_directory

ByteArray = NDArray[np.uint8]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]

# The integer that kernels count with: 64 bits, wrapping.
if TYPE_CHECKING:
    long = int
else:
    long = np.int64

COMPILED = os.environ.get("KAFKALOG_KERNELS", "compiled") != "plain"

_Function = TypeVar("_Function", bound=Callable[..., Any])

if COMPILED:
    from llvmlite import ir
    from numba import config, njit, types
    from numba.core import cgutils
    from numba.extending import intrinsic

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
        target: ByteArray, target_start: int, source: ByteArray, source_start: int, size: int
    ) -> None:
        """Copy `size` bytes, by the machine's memcpy rather than one by one."""
        _memcpy(target, target_start, source, source_start, size)  # type: ignore[call-arg]

    @kernel
    def prefetch(data: ByteArray, index: int) -> None:
        """Tell the processor that data[index] is needed soon; any index is allowed."""
        _prefetch(data, index)  # type: ignore[call-arg]

else:

    def kernel(function: _Function) -> _Function:
        """The function itself; its 64-bit arithmetic wraps silently, as machine code's does."""

        def plain(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):
                return function(*arguments)

        return plain  # type: ignore[return-value]

    inlined_kernel = kernel

    def copy_bytes(
        target: ByteArray, target_start: int, source: ByteArray, source_start: int, size: int
    ) -> None:
        """Copy `size` bytes."""
        target[target_start : target_start + size] = source[source_start : source_start + size]

    def prefetch(data: ByteArray, index: int) -> None:
        """Nothing: only machine code can."""
