"""Kernels that are loaded without numba: the same results, found again, and never stale."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from kafkalog.columns.jit.compiled import COMPILED
from kafkalog.columns.jit.stored_kernels import StoredKernel
from tests.unit.columns.installed_kernels import USES_STORED, installed, run

_FACTOR = 3


def _tripled(number: int) -> int:
    return number * _FACTOR


def _sum_of_tripled(numbers: Any, is_negative: bool) -> tuple[int, bool]:
    total = 0
    for index in range(len(numbers)):
        total += tripled(numbers[index])
    return (-total if is_negative else total), total > 10


tripled = StoredKernel(_tripled)


def with_globals(function: Callable[..., Any], **changed: object) -> StoredKernel:
    code: FunctionType = function  # type: ignore[assignment]
    return StoredKernel(FunctionType(code.__code__, {**code.__globals__, **changed}))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("kafkalog.columns.jit.kernel_files._candidates", lambda: [tmp_path])
    return tmp_path


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
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


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_arrays_of_other_types_and_strides_are_other_code(cache: Path) -> None:
    kernel = StoredKernel(_sum_of_tripled)
    assert kernel(np.arange(10, dtype=np.int64)[::2], False) == (60, True)
    assert kernel(np.arange(5, dtype=np.int32), False) == (30, True)
    assert len(list(cache.iterdir())) == 2
    with pytest.raises(TypeError, match="no kernel takes"):
        kernel([1, 2], False)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_a_damaged_file_is_made_anew(cache: Path) -> None:
    numbers = np.arange(5, dtype=np.int64)
    StoredKernel(_sum_of_tripled)(numbers, True)
    (kept,) = cache.iterdir()
    sound = kept.read_bytes()
    kept.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert StoredKernel(_sum_of_tripled)(numbers, True) == (-30, True)
    assert len(kept.read_bytes()) == len(sound)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("zipped", [False, True])
def test_numba_is_not_imported_where_code_is_kept(tmp_path: Path, zipped: bool) -> None:
    place = installed(tmp_path, zipped=zipped)
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "True"]
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "False"]
    (kept,) = (tmp_path / "t").iterdir()
    shutil.rmtree(kept)
    assert run(USES_STORED, place, tmp_path / "t", "stored") == ["2", "True"]
