"""The examples of docs/python.md run as they are."""

import re
from typing import Any

from tests.support.repository import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_runs() -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    names: dict[str, Any] = {"log_dir": str(ROOT / "examples" / "shop-week")}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 5
