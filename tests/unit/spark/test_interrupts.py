"""Ctrl-C while Spark starts waits until there is a JVM that can be ended."""

import logging
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from kafkalog.exit_codes import StoppedError, stopped_by_exceptions
from kafkalog.spark.interrupts import end_at_interrupt, interrupt_postponed


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """Whatever a session of an earlier test has put in its place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_what_has_begun_is_done_before_ctrl_c_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), interrupt_postponed():
        press_ctrl_c()
        done = True
    assert done
    assert capsys.readouterr().err == "interrupted: ends when Spark has started\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_ctrl_c_ends_it_at_once() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), interrupt_postponed():
        press_ctrl_c()
        press_ctrl_c()
        done = True
    assert not done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ended_by_hang_up")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_stops_a_job_waits_as_well(number: signal.Signals) -> None:
    done = False
    with pytest.raises(StoppedError) as caught, stopped_by_exceptions(), interrupt_postponed():
        os.kill(os.getpid(), number)
        done = True
    assert (done, caught.value.exit_code) == (True, 128 + number)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_handler_of_somebody_else_stays() -> None:
    called: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: called.append(number))
    with interrupt_postponed():
        press_ctrl_c()
        assert called == [signal.SIGINT]


def test_a_job_ends_at_ctrl_c_without_a_page_of_traces(caplog: pytest.LogCaptureFixture) -> None:
    signal.signal(signal.SIGINT, lambda number, _: pytest.fail("the session's own handler"))
    filters = list(logging.root.filters)
    try:
        end_at_interrupt()
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()
        for error in (KeyboardInterrupt, ValueError):
            try:
                raise error
            except error:
                logging.error("while sending", exc_info=sys.exc_info())
    finally:
        logging.root.filters[:] = filters
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ValueError]


def test_what_fails_while_an_interrupted_connection_is_closed_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loggers = [logging.root, logging.getLogger("py4j.clientserver")]
    filters = [list(logger.filters) for logger in loggers]
    try:
        end_at_interrupt()
        for first in (KeyboardInterrupt, ValueError):
            try:
                try:
                    raise first
                except first:
                    raise BrokenPipeError  # noqa: B904
            except BrokenPipeError:
                loggers[1].exception("while closing")
    finally:
        for logger, before in zip(loggers, filters, strict=True):
            logger.filters[:] = before
    (record,) = caplog.records
    assert record.exc_info and record.exc_info[1]
    assert isinstance(record.exc_info[1].__context__, ValueError)
