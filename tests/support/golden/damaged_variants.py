"""The faults in each hand-damaged copy of a real broker's log."""

# The faults in the .log files of each variant: kind and position, by hand from its description.
FOUND = {
    "truncated-last-batch": [("truncated", 15954)],
    "truncated-in-header": [("truncated", 15954)],
    "bitflip-payload-active": [("checksum", 7979)],
    "bitflip-payload-first-segment": [("checksum", 23728)],
    "bitflip-first-segment-recover-all": [("checksum", 23728)],
    "bitflip-header-crc": [("checksum", 7979)],
    "bitflip-leader-epoch": [("leader_epoch", 7979)],
    "zeroed-tail-appended": [("zeros", 18500)],
    "zeroed-tail-overwritten": [("checksum", 7979), ("zeros", 15954)],
    "zero-hole": [("zeros", 7979), ("garbage", 12075)],
    "garbage-middle": [("checksum", 7979), ("garbage", 15954)],
    "garbage-block-inserted": [("garbage", 7979)],
    "garbage-tail": [("garbage", 18500)],
    "length-huge": [("length", 7979)],
    "length-negative": [("length", 7979)],
    "length-too-small": [("length", 7979)],
    "magic-9": [("magic", 7979)],
    "codec-7-valid-crc": [("codec", 7979)],
    "record-count-wrong-valid-crc": [("record_count", 7979)],
    "varint-broken-valid-crc": [("records", 7979)],
    "compressed-body-broken-valid-crc": [("compression", 0)],
    "compressed-bitflip": [("checksum", 0)],
    "offsets-go-back": [("offset_order", 7979)],
    "base-offset-jump": [("offset_order", 7979)],
    "middle-segment-missing": [("segment_hole", 59335)],
    "first-segment-truncated": [("truncated", 25286), ("segment_hole", 29674)],
}


# The same, and what indexes say of records that an emptied segment has lost (F76).
FOUND_WITH_INDEXES = {**FOUND, "empty-active-log": [("missing_end", 0)]}


# In these the log files are whole: indexes, snapshots or checkpoints were damaged.
WHOLE = {
    "as-killed",
    "index-garbage",
    "index-garbage-active",
    "index-missing",
    "timeindex-missing",
    "all-indexes-missing",
    "timeindex-garbage",
    "snapshot-garbage",
    "epoch-checkpoint-garbage",
    "empty-active-log",
    "swap-and-cleaned-left",
}
