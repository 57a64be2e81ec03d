"""The end of the tutorial about a topic's history, in a process of its own: its session has Spark's
Kafka source.

    python -m tests.docs.live_reader BOOTSTRAP SCRATCH

writes the topic as the tutorial's last lines have it, history and live records, to SCRATCH/orders.
"""

import sys
from pathlib import Path

import kafkalog
from tests.docs.shown_commands import Reader, Shown, shown_in
from tests.support.repository import ROOT

TUTORIAL = ROOT / "docs" / "tutorials" / "backfill.md"


def main(bootstrap: str, scratch: str) -> None:
    """Do what the first and the last step show."""
    spark = kafkalog.notebook_session()
    reader = Reader(spark, Path(scratch), lambda text: text.replace("broker:9092", bootstrap))
    (live,) = shown_in(TUTORIAL, "python live")[-1:]
    reader.does(shown_in(TUTORIAL)[0])
    reader.does(live)
    reader.does(Shown(0, True, 'orders.write.parquet("/tmp/orders")', None))
    reader.ends()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
