"""A headless chromium, spoken to in the DevTools protocol over a pipe: no driver to install.

https://chromedevtools.github.io/devtools-protocol/ has the methods and events.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_S = 60
_ARGUMENTS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # which does not start for root, and the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


# The browser reads descriptor 3 and writes descriptor 4, which may be anything here.
_PIPES = """
import os, sys
from fcntl import F_DUPFD, fcntl
commands, answers = (fcntl(int(number), F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


_WITH_PIPES = (sys.executable, "-c", _PIPES)


class Chromium:
    """One page of a running browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._left, self._last, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A method and its result; what happens meanwhile is kept in `events`."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._from], [], [], WAIT_S)
            assert ready, f"chromium says nothing for {WAIT_S} s"
            found = os.read(self._from, 1 << 20)
            assert found, "chromium has ended"
            self._left += found
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def value(self, expression: str) -> Any:
        """What a JavaScript expression comes to, promises waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(self, width: int, height: int, *, is_phone: bool) -> None:
        """What the page has room for, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=is_phone,
        )

    def open(self, page: Path, until: str = "document.readyState === 'complete'") -> None:
        """Open a file, and wait until the expression is true."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        deadline = time.monotonic() + WAIT_S
        while not self.value(f"location.protocol === 'file:' && ({until})"):
            assert time.monotonic() < deadline, f"{until} is not true after {WAIT_S} s"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Errors, exceptions and warnings in the console."""
        said = []
        for event in self.events:
            method, what = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                said.append(str(what["exceptionDetails"]))
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                said.append(what["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
                said.append(str(what["args"]))
        return said

    def requests(self) -> list[str]:
        """What the page has asked for, but for what it carries in itself."""
        urls = (
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        )
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def screenshot(self, path: Path) -> None:
        """The whole page, however long."""
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))

    def printed(self, path: Path) -> None:
        """The page on A4, as a PDF."""
        found = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser of its own, with a profile that is thrown away; ended in any case."""
    assert PROGRAM is not None
    to_browser, from_browser = os.pipe(), os.pipe()
    with TemporaryDirectory() as profile:
        pipes = str(to_browser[0]), str(from_browser[1])
        process = subprocess.Popen(
            [*_WITH_PIPES, *pipes, PROGRAM, *_ARGUMENTS, f"--user-data-dir={profile}"],
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            browser = Chromium(to_browser[1], from_browser[0])
            yield browser
            with suppress(OSError, AssertionError):
                browser.call("Browser.close")
        finally:
            os.close(to_browser[1])
            os.close(from_browser[0])
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
