"""How severe each fault is. F68 to F78."""

from kafkalog.format.faults import Fault, Severity


def test_faults_are_errors_unless_a_rule_says_otherwise() -> None:
    # F68; F72 and F73 warn, F74 informs. Where a fault is milder at the end of a log (F69, F76) is
    # decided where it is put into words.
    milder = {fault: fault.severity for fault in Fault if fault.severity is not Severity.ERROR}
    assert milder == {
        Fault.NONE: Severity.NONE,
        Fault.LEADER_EPOCH: Severity.WARNING,
        Fault.SEGMENT_HOLE: Severity.WARNING,
        Fault.RESERVED_ATTRIBUTES: Severity.INFORMATION,
    }


def test_what_a_fault_is_called_in_tables() -> None:
    # F68
    assert (Fault.RECORD_COUNT.label, Fault.NONE.label) == ("record_count", "none")
