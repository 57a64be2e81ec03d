"""Lengths of time, and what people call them."""

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

LENGTHS = [
    (0, "0 ms"),
    (1999, "1,999 ms"),
    (2000, "2 s"),
    (12_499, "12 s"),
    (12_500, "13 s"),
    (2 * MINUTE_MS - 1, "120 s"),
    (2 * MINUTE_MS, "2 min"),
    (2 * HOUR_MS - 1, "120 min"),
    (2 * HOUR_MS, "2 h"),
    (165_037_855, "46 h"),
    (2 * DAY_MS - 1, "2 d"),
    (2 * DAY_MS, "2 d"),
    (2 * DAY_MS + 3 * HOUR_MS, "2 d 3 h"),
    (7 * DAY_MS, "7 d"),
    (7 * DAY_MS - 1, "7 d"),
    (20_000 * DAY_MS + HOUR_MS, "20,000 d 1 h"),
    # A record's timestamp is its producer's: it can be later than the moment that is asked about.
    (-1500, "-1,500 ms"),
    (-3 * DAY_MS, "-3 d"),
]
