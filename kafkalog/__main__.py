"""`python -m kafkalog` is the command `kafkalog`."""

from __future__ import annotations

from kafkalog.command_line.main import main

main()
