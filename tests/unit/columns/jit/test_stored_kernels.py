"""Kernels that are loaded without numba: the same results, found again, and never stale."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from kafkalog.columns.batches import batch_table
from kafkalog.columns.jit import kernel_files
from kafkalog.columns.jit.compiled import COMPILED
from kafkalog.columns.jit.numba_kernels import kernel as numba_kernel
from kafkalog.columns.jit.stored_kernels import StoredKernel
from tests.unit.columns.installed_kernels import USES_STORED, installed, run

compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
_FACTOR = 3


def _tripled(number: int) -> int:
    return number * _FACTOR


def _sum_of_tripled(numbers: Any, is_negative: bool) -> tuple[int, bool]:
    total = 0
    for index in range(len(numbers)):
        total += tripled(numbers[index])
    return (-total if is_negative else total), total > 10


def _first_and_last(numbers: Any, is_negative: bool) -> tuple[int, int]:
    last = numbers[len(numbers) - 1]
    return numbers[0], (-last if is_negative else last)


tripled = StoredKernel(_tripled)


def with_globals(function: Callable[..., Any], **changed: object) -> StoredKernel:
    code: FunctionType = function  # type: ignore[assignment]
    return StoredKernel(FunctionType(code.__code__, {**code.__globals__, **changed}))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("kafkalog.columns.jit.kernel_files._candidates", lambda: [tmp_path])
    return tmp_path


@compiled
def test_code_is_found_again_until_a_constant_of_a_callee_changes(cache: Path) -> None:
    numbers = np.arange(5, dtype=np.int64)
    assert StoredKernel(_sum_of_tripled)(numbers, True) == (-30, True)
    (kept,) = cache.iterdir()
    changed = kept.stat().st_mtime_ns
    assert StoredKernel(_sum_of_tripled)(numbers, False) == (30, True)
    assert kept.stat().st_mtime_ns == changed
    doubled = with_globals(_tripled, _FACTOR=2)
    assert with_globals(_sum_of_tripled, tripled=doubled)(numbers, False) == (20, True)
    assert len(list(cache.iterdir())) == 2


def test_code_that_reads_a_constant_of_a_module_is_other_code_once_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crc_of(row: Any) -> int:
        return row[batch_table.CRC]

    before = kernel_files.fingerprint(crc_of)
    monkeypatch.setattr(batch_table, "MAGIC", 99)
    assert kernel_files.fingerprint(crc_of) == before
    monkeypatch.setattr(batch_table, "CRC", 99)
    assert kernel_files.fingerprint(crc_of) != before


@compiled
def test_arrays_of_other_types_and_strides_are_other_code(cache: Path) -> None:
    kernel = StoredKernel(_sum_of_tripled)
    assert kernel(np.arange(10, dtype=np.int64)[::2], False) == (60, True)
    assert kernel(np.arange(5, dtype=np.int32), False) == (30, True)
    assert len(list(cache.iterdir())) == 2
    with pytest.raises(TypeError, match="no kernel takes"):
        kernel([1, 2], False)


@compiled
def test_a_damaged_file_is_made_again(cache: Path) -> None:
    numbers = np.arange(5, dtype=np.int64)
    StoredKernel(_sum_of_tripled)(numbers, True)
    (kept,) = cache.iterdir()
    sound = kept.read_bytes()
    kept.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert StoredKernel(_sum_of_tripled)(numbers, True) == (-30, True)
    assert len(kept.read_bytes()) == len(sound)


@compiled
@pytest.mark.parametrize("zipped", [False, True])
def test_numba_is_not_imported_where_code_is_kept(tmp_path: Path, zipped: bool) -> None:
    place = installed(tmp_path, zipped=zipped)
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "True"]
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "False"]
    (kept,) = (tmp_path / "t").iterdir()
    shutil.rmtree(kept)
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "True"]


@compiled
@pytest.mark.parametrize(
    "changed",
    ["kernel_files.numba_version", "stored_kernels.llvmlite_version", "stored_kernels._processor"],
)
def test_another_version_of_numba_or_llvmlite_or_another_processor_is_other_code(
    cache: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    numbers = np.arange(5, dtype=np.int64)
    StoredKernel(_sum_of_tripled)(numbers, True)
    other: Any = "other" if changed.endswith("llvmlite_version") else lambda: "other"
    monkeypatch.setattr(f"kafkalog.columns.jit.{changed}", other)
    assert StoredKernel(_sum_of_tripled)(numbers, True) == (-30, True)
    assert len(list(cache.iterdir())) == 2


@compiled
def test_another_version_of_numba_compiles_what_it_keeps_itself_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel: Any = numba_kernel(_tripled)
    assert sum(kernel.stats.cache_hits.values()) == 0
    for version, hits in (("first", 0), ("first", 1), ("second", 0)):
        monkeypatch.setattr(kernel_files, "numba_version", lambda version=version: version)
        kernel = numba_kernel(_tripled)
        assert kernel(np.int64(2)) == 6
        assert sum(kernel.stats.cache_hits.values()) == hits


# What kept code needs of numba and llvmlite and they do not document.
_STORED_BY = (
    "numba.core.codegen.CodeLibrary._get_compiled_object",
    "llvmlite.binding.ObjectFileRef",
    "llvmlite.binding.create_mcjit_compiler",
)
_KEPT_BY_NUMBA = (
    "numba.core.compiler.CompileResult._reduce",
    "numba.core.serialize.dumps",
    "numba.core.codegen.CPUCodegen.magic_tuple",
)
_LOADED_BY_NUMBA = ("numba.core.compiler.CompileResult._rebuild",)


@compiled
@pytest.mark.parametrize("missing", [*_STORED_BY, *_KEPT_BY_NUMBA, *_LOADED_BY_NUMBA])
def test_kernels_run_with_one_warning_where_numba_has_lost_an_internal_name(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    monkeypatch.setattr(kernel_files, "_reported", [])
    numbers = np.arange(5, dtype=np.int64)
    make: Any = StoredKernel if missing in _STORED_BY else numba_kernel
    # numba itself is ready, and has code to load where that is what fails.
    before: Any = _first_and_last if missing in _LOADED_BY_NUMBA else _tripled
    numba_kernel(before)(*((numbers, True) if before is _first_and_last else (numbers[0],)))
    with monkeypatch.context() as changed, caplog.at_level(logging.WARNING):
        changed.delattr(missing)
        assert make(_first_and_last)(numbers, True) == (0, -4)
        assert make(_first_and_last)(numbers, False) == (0, 4)
    (message,) = caplog.messages
    assert "internals of numba or llvmlite have changed" in message


@compiled
def test_kernels_run_with_one_warning_where_numba_passes_arguments_in_another_way(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernel_files, "_reported", [])
    # As if numba passed no parent of an array any more.
    monkeypatch.setattr("kafkalog.columns.jit.stored_kernels._letters", lambda _: "PqqPqqb")
    with caplog.at_level(logging.WARNING):
        numbers = np.arange(5, dtype=np.int64)
        assert StoredKernel(_first_and_last)(numbers, True) == (0, -4)
    assert "calling convention has changed: PPPPqqPqqb" in caplog.messages[0]
