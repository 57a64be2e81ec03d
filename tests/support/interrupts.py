"""Processes that tests interrupt."""

import signal


def heed_ctrl_c() -> None:
    """To be run in a new process: shells have what they start in the background ignore it, tests
    perhaps."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
