"""Kernels as machine code. Only this module and `stored_kernels` name numba and llvmlite.

Only `_KeptCode` and `object_code` use what numba does not document, within `unless_changed`.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from kafkalog.columns.jit.kernel_files import (
    code_name,
    fingerprint,
    keep_code,
    kept_code,
    unless_changed,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Reference counting is off: it makes a loop over bytes ten times slower, and kernels allocate
# nothing that would need it.
_OPTIONS = {"nogil": True, "_nrt": False}


class _KeptCode:
    """The cache of a kernel, in place of numba's own, which loads whatever lies in its directories.
    numba calls these methods."""

    cache_path = ""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return unless_changed(lambda: self._load(sig, target_context))

    def save_overload(self, sig: Any, data: Any) -> None:
        unless_changed(lambda: self._save(sig, data))

    def flush(self) -> None:
        """Do nothing: kept code is never outdated."""

    def _load(self, sig: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        target_context.refresh()
        code = kept_code(self._name(sig, target_context.codegen()))
        return code and CompileResult._rebuild(target_context, *pickle.loads(code))

    def _save(self, sig: Any, data: Any) -> None:
        from numba.core.serialize import dumps

        if not data.library.has_dynamic_globals:
            keep_code(self._name(sig, data.codegen), dumps(data._reduce()))

    def _name(self, sig: Any, codegen: Any) -> str:
        made_of = fingerprint(self._function), sig, codegen.magic_tuple()
        return code_name(self._function.__name__, sys.version_info[:2], *made_of)


def kernel(function: _Function) -> _Function:
    """Return a function over arrays of bytes and integers, compiled once and kept on disk."""
    compiled: Any = njit(**_OPTIONS)(function)  # type: ignore[call-overload]
    unless_changed(lambda: _keep(compiled, function))
    return compiled  # type: ignore[no-any-return]


def _keep(compiled: Any, function: Callable[..., Any]) -> None:
    """Give a kernel its cache, if numba still uses one."""
    if not (
        hasattr(compiled._cache, "load_overload") and hasattr(compiled._cache, "save_overload")
    ):
        raise AttributeError("numba's dispatcher has another cache")
    compiled._cache = _KeptCode(function)


def inlined_kernel(function: _Function) -> _Function:
    """Return a kernel that becomes part of each kernel that calls it: a call would pass every array
    field by field."""
    compiled: _Function = njit(inline="always", **_OPTIONS)(function)  # type: ignore[call-overload]
    return compiled


def kernel_to_store(function: _Function) -> _Function:
    """Return a kernel whose code `object_code` returns; Python cannot call it."""
    unwrapped = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: _Function = njit(**_OPTIONS, **unwrapped)(function)  # type: ignore[call-overload]
    return compiled


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def _memcpy(typing_context, target, target_start, source, source_start, size):
    def generate(context, builder, signature, arguments):
        to = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        from_ = _pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        cgutils.raw_memcpy(builder, to, from_, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, target_start, source, source_start, size), generate


@intrinsic
def _prefetch(typing_context, data, index):
    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        flag = ir.IntType(32)
        function = cgutils.get_or_insert_function(
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
_IR_LETTERS = {"i64": "q", "i8": "b", "ptr": "P"}


def object_code(dispatcher: Any, arguments: tuple[Any, ...], letters: str) -> ObjectCode | None:
    """Compile a kernel for arguments of such types, whether their arrays can be written or not.

    `letters` are the types of the arguments as `stored_kernels` passes them. Returns None if the
    code needs numba at run time. Raises TypeError if numba expects other arguments.
    """
    signature = tuple(_type_of(argument) for argument in arguments)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    returned = compiled.signature.return_type
    parts = () if returned == types.none else getattr(returned, "types", (returned,))
    library, symbol = compiled.library, compiled.fndesc.llvm_func_name
    needed = [f.name for f in library._final_module.functions if f.is_declaration]
    if not all(name.startswith("llvm.") for name in needed):
        return None
    if not all(part in _LETTERS for part in parts):
        return None
    found = [
        str(argument.type) for argument in library._final_module.get_function(symbol).arguments
    ]
    expected = "".join("P" if name.endswith("*") else _IR_LETTERS.get(name, "?") for name in found)
    # Where the result goes and where an error goes come first.
    if expected != f"PP{letters}":
        raise TypeError(f"numba's calling convention has changed: {expected}")
    returned_letters = "".join(_LETTERS[part] for part in parts)
    return ObjectCode(library._get_compiled_object(), symbol, returned_letters)


def _type_of(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        element = from_dtype(argument.dtype)
        if argument.flags.c_contiguous:
            return types.Array(element, argument.ndim, "C")
        return types.Array(element, argument.ndim, "A")
    if isinstance(argument, tuple):
        parts = [_type_of(part) for part in argument]
        return types.BaseTuple.from_types(parts, pyclass=type(argument))
    return types.boolean if isinstance(argument, bool | np.bool_) else types.int64
