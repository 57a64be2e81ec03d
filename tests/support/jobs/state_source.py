"""A source of a table of state."""

from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.views.planning.table_positions import StateSource

SOURCE = StateSource(
    topic="orders",
    partition=0,
    log_start_offset=10,
    end_offset=90,
    log_end_offset=100,
    end_from="high_watermark",
    cluster_id="cluster",
    input_path="/logs",
    topic_id="first",
    leader_epochs=(EpochStart(1, 10), EpochStart(3, 50)),
)
