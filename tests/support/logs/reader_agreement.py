"""Both readers give the same account and the same rows of any bytes."""

from tests.support.logs.both_readers import by_kernels, by_reference

LIMIT = 100_000  # bytes that a batch may have in these tests


def assert_readers_agree(data: bytes, base: int | None = 0, following: int | None = None) -> None:
    """The two readers agree, and every byte is in exactly one range."""
    account, rows = by_reference(data, base, following, max_batch_bytes=LIMIT)
    assert sum(row[1] for row in account) == len(data)
    assert [row[0] for row in account] == [
        sum(row[1] for row in account[:i]) for i in range(len(account))
    ]
    for in_pieces in (False, True):
        result = by_kernels(data, base, following, in_pieces=in_pieces, max_batch_bytes=LIMIT)
        assert result == (account, rows)
    unchecked = by_reference(data, base, following, check_crcs=False, max_batch_bytes=LIMIT)
    assert by_kernels(data, base, following, check_crcs=False, max_batch_bytes=LIMIT) == unchecked
