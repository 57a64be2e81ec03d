"""A real broker goes on with a log that kafkalog appended to, as if it had written it itself."""

import re

from tests.support.broker.appended_log import APPENDED_TOPIC, COMMITTED
from tests.support.broker.broker_run import BrokerRun
from tests.support.broker.consumed_rows import row_of


def test_the_log_is_loaded_whole_and_only_its_newest_segment_checked(broker: BrokerRun) -> None:
    # F102, F121, F149, F150, F158.
    written = broker.appended
    assert len(written.segments) > 2
    assert broker.server.end_offset(APPENDED_TOPIC, 0) == written.end_offset
    lines = [line for line in broker.server.log_text().splitlines() if APPENDED_TOPIC in line]
    checked = re.findall(r"Recovering unflushed segment (\d+)\.", "\n".join(lines))
    assert [int(base) for base in checked] == [int(written.segments[-1].stem)]
    assert not [line for line in lines if re.search("truncat|corrupt|invalid", line, re.I)]
    served = broker.server.log_dir / written.directory.name
    for path in written.segments[:-1]:
        for kind in (".log", ".index", ".timeindex", ".txnindex"):
            if (written.directory / f"{path.stem}{kind}").exists():
                kept = (served / f"{path.stem}{kind}").read_bytes()
                assert kept == (written.directory / f"{path.stem}{kind}").read_bytes(), kind


def test_a_consumer_of_committed_records_is_served_by_our_transaction_index(
    broker: BrokerRun,
) -> None:
    # F104, F112: the segment with the abort is not rebuilt by the broker.
    written = broker.appended
    assert [path.stem for path in written.directory.glob("*.txnindex")] != [
        written.segments[-1].stem
    ]
    rows = broker.server.consume(APPENDED_TOPIC, len(COMMITTED), "read_committed")
    assert rows == [row_of(0, record) for record in COMMITTED]
