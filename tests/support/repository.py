"""Where the repository has what tests read."""

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "golden" / "data"
EXAMPLES = ROOT / "examples" / "log-dirs"
# What fixture `unpacked` is: the folder with the contents of an archive, by its name.
Unpack = Callable[[str], Path]
SHOP = ROOT / "examples" / "shop-week"


def delta_jars() -> list[Path]:
    """The jars of Delta and Avro, where `make setup` puts them; none if it was not run."""
    return sorted(Path(sys.prefix).glob("ivy/jars/*.jar"))
