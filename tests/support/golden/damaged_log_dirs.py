"""All damaged copies of a log as topics of one log directory, and what a broker did to each."""

import json
from pathlib import Path
from typing import Any

from kafkalog.format.side_files.checkpoints import read_offset_checkpoint, write_offset_checkpoint


def broker_actions(golden: Path) -> dict[str, dict[str, Any]]:
    """What a broker did to each copy at its start, by the name of the copy."""
    told = json.loads((golden / "recovery.json").read_text())
    return {name: each for name, each in told.items() if "topic" in each}


def one_log_dir(variants: Path, said: dict[str, dict[str, Any]], log_dir: Path) -> Path:
    """All copies as topics of one log directory, named after what was done to them."""
    log_dir.mkdir()
    points: dict[tuple[str, int], int] = {}
    for name, told in said.items():
        source = variants / name / "log-dirs"
        (log_dir / f"{name}-0").symlink_to(source / f"{told['topic']}-0")
        text = (source / "recovery-point-offset-checkpoint").read_text()
        points[name, 0] = read_offset_checkpoint(text).get((told["topic"], 0), 0)
    checkpoint = write_offset_checkpoint(points)
    (log_dir / "recovery-point-offset-checkpoint").write_text(checkpoint)
    return log_dir
