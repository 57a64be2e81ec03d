"""The kernel that fills columns from many batches in one call."""

from __future__ import annotations

from kafkalog.columns.batches.batch_table import FAULT, MAGIC
from kafkalog.columns.jit.compiled import ByteArray, LongArray, kernel
from kafkalog.columns.records.message_kernels import fill_inner_messages, fill_plain_message
from kafkalog.columns.records.payloads import BEGIN, COMPRESSION_ID, COUNT, END, ROW, UNSEEN
from kafkalog.columns.records.record_arrays import RecordArrays, Wanted
from kafkalog.columns.records.record_kernels import fill_batch, fill_from_header

# Room for two fields' places, the last inner offset and the number of inner messages.
FIELDS_SIZE = 6


@kernel
def fill_rows(
    file_data: ByteArray,
    scratch: ByteArray,
    table: LongArray,
    payloads: LongArray,
    first_offset: int,
    end_offset: int,
    first_ms: int,
    last_ms: int,
    check_inner_crcs: bool,
    wanted: Wanted,
    arrays: RecordArrays,
    cursor: LongArray,
    before: LongArray,
    fields: LongArray,
    crc_tables: LongArray,
) -> None:
    """Append the records of the batches in `payloads`; set FAULT of those that yield none."""
    for i in range(payloads.shape[0]):
        row = payloads[i, ROW]
        begin = payloads[i, BEGIN]
        end = payloads[i, END]
        compressed = payloads[i, COMPRESSION_ID]
        if begin == UNSEEN:
            fill_from_header(table, row, first_offset, end_offset, wanted, arrays, cursor)
            fault = 0
        elif table[row, MAGIC] == 2:
            source = scratch if compressed else file_data
            fault = fill_batch(
                source,
                begin,
                end,
                payloads[i, COUNT],
                table,
                row,
                first_offset,
                end_offset,
                first_ms,
                last_ms,
                wanted,
                arrays,
                cursor,
                before,
            )
        elif compressed:
            fault = fill_inner_messages(
                scratch,
                begin,
                end,
                payloads[i, COUNT],
                table,
                row,
                first_offset,
                end_offset,
                first_ms,
                last_ms,
                wanted,
                arrays,
                cursor,
                before,
                fields,
                crc_tables,
                check_inner_crcs,
            )
        else:
            fault = fill_plain_message(
                file_data,
                begin,
                end,
                table,
                row,
                first_offset,
                end_offset,
                first_ms,
                last_ms,
                wanted,
                arrays,
                cursor,
                fields,
            )
        if fault != 0:
            table[row, FAULT] = fault
