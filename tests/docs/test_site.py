"""The documentation as a site: every page is in its navigation, and every link leads somewhere."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.repository import ROOT

MKDOCS = ROOT / "build" / "site" / "bin" / "mkdocs"


def test_the_navigation_has_all_pages() -> None:
    # MkDocs is not there in `make test`; the site's own hook names the decisions and tables.
    docs = ROOT / "docs"
    named = (docs / "site" / "mkdocs.yml").read_text()
    pages = [
        path.relative_to(docs)
        for path in docs.rglob("*.md")
        if path.parent.name not in ("decisions", "tables")
    ]
    assert [f"{page}" for page in pages if f": {page}\n" not in named] == []


@pytest.mark.deep
@pytest.mark.skipif(not MKDOCS.exists(), reason="no MkDocs: `make docs` installs it")
def test_the_site_has_all_pages_no_dead_link_and_asks_no_other_host(tmp_path: Path) -> None:
    site = tmp_path / "site"
    settings = ["--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(site)]
    done = subprocess.run(
        [str(MKDOCS), "build", *settings],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    api = (site / "reference" / "python.html").read_text()
    for name in ("kafkalog.read", "kafkalog.export", "kafkalog.testing.LogDirectory"):
        assert f'id="{name}"' in api
    home = (site / "index.html").read_text()
    assert 'src="https://' not in home and 'rel="stylesheet" href="https://' not in home
