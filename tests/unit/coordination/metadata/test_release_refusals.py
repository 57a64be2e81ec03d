"""What a release refuses of features, records and configs. Rules: docs/format.md F1014 to F1018."""

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.release_refusals import (
    Effect,
    Refused,
    SeenRecords,
    config_refusals,
    feature_refusals,
    property_refusals,
    record_refusals,
    refusals,
)


def test_a_newer_metadata_version_names_the_release_to_start() -> None:
    # F1014.
    (found,) = feature_refusals({"metadata.version": 30}, "4.1")
    assert (found.kind, found.effect) == (Refused.METADATA_VERSION, Effect.ENDS)
    assert found.subject == "metadata.version 30 (4.3-IV0)"
    assert found.reason == "Kafka 4.1 reads up to 4.1-IV1"
    assert found.remedy.startswith("start Kafka 4.3, or a later one")


def test_an_older_metadata_version_is_raised_by_the_release_between() -> None:
    # F1010 and F1014: 3.9 reads 3.0-IV1, 4.0 begins with 3.3-IV3.
    assert [*feature_refusals({"metadata.version": 1}, "3.9")] == []
    (found,) = feature_refusals({"metadata.version": 6}, "4.0")
    assert found.reason == "Kafka 4.0 reads 3.3-IV3 and later"
    assert "start Kafka 3.9, run kafka-features.sh" in found.remedy


def test_a_feature_can_be_lowered_before() -> None:
    # F1011 and F1014.
    (found,) = feature_refusals({"share.version": 2, "group.version": 1}, "4.3")
    assert found.kind is Refused.FEATURE
    assert "--feature share.version=1" in found.remedy
    assert [each.subject for each in feature_refusals({"group.version": 1}, "3.9")] == [
        "feature group.version at level 1"
    ]


def test_records_of_unknown_types_and_versions_are_refused() -> None:
    # F1015.
    seen = SeenRecords()
    for offset, (number, record_version, name) in enumerate(
        [(2, 0, "TopicRecord"), (0, 3, "RegisterBrokerRecord"), (0, 4, "RegisterBrokerRecord")]
    ):
        seen.add(offset, number, record_version, name)
    seen.add(7, 28, 0, "ClearElrRecord")
    assert [*record_refusals(seen, "4.4")] == []
    version, record_type = record_refusals(seen, "3.9")
    assert (version.kind, record_type.kind) == (Refused.RECORD_VERSION, Refused.RECORD_TYPE)
    assert version.subject == "record RegisterBrokerRecord at offset 2 of __cluster_metadata"
    assert version.remedy == "start Kafka 4.3 or later"
    assert record_type.remedy == "start Kafka 4.0 or later"


def test_a_record_of_a_snapshot_has_no_offset() -> None:
    # F1015.
    seen = SeenRecords()
    seen.add(None, 0, 4, "RegisterBrokerRecord")
    seen.add(3, 0, 4, "RegisterBrokerRecord")
    (found,) = record_refusals(seen, "3.9")
    assert found.subject.startswith("record RegisterBrokerRecord in the newest snapshot of ")


def test_configs_of_a_later_release_have_no_effect() -> None:
    # F1018: a downgrade.
    image = MetadataImage()
    image.put("config", ("topic", "a", "internal.segment.bytes"), {"value": "300"})
    (found,) = config_refusals(image, "3.9")
    assert found.effect is Effect.IGNORED
    assert found.reason.startswith("Kafka 4.1 is the first release with this config")


def test_configs_end_a_process_or_do_not_count() -> None:
    # F1016 to F1018, and what ends the process comes first.
    image = MetadataImage()
    image.put("config", ("broker", "", "log.cleaner.threads"), {"value": "abc"})
    image.put("config", ("topic", "a", "message.format.version"), {"value": "2.8"})
    image.put("topic", ("B",), {"topic": "b"})
    image.put("config", ("topic", "b", "segment.bytes"), {"value": "300"})
    image.put("config", ("topic", "c", "of.a.plug-in"), {"value": "x"})
    # As a broker of 4.4.0 did with the configs of a topic that is not there.
    image.put("config", ("topic", "gone", "segment.bytes"), {"value": "5"})
    assert [(each.subject, each.effect) for each in refusals(image, "4.1")] == [
        ("topic b: segment.bytes=300", Effect.ENDS),
        ("broker (all): log.cleaner.threads=abc", Effect.IGNORED),
        ("topic a: message.format.version", Effect.IGNORED),
        ("topic gone: segment.bytes=5", Effect.IGNORED),
    ]
    (ended,) = (each for each in config_refusals(image, "4.1") if each.effect is Effect.ENDS)
    assert "--entity-type topics --entity-name b --delete-config segment.bytes" in ended.remedy


def test_properties_are_refused() -> None:
    # F1016 and F1018.
    given = {"broker.id": "1", "zookeeper.connect": "localhost", "num.io.threads": "0"}
    found = [*property_refusals(given, "4.4")]
    assert [(each.subject, each.effect) for each in found[:2]] == [
        ("num.io.threads=0", Effect.ENDS),
        ("zookeeper.connect", Effect.IGNORED),
    ]
    missing = [each.subject for each in found if "missing" in each.reason]
    assert missing == ["controller.listener.names", "process.roles"]
    assert [each.effect for each in property_refusals(given, "3.9")] == [Effect.ENDS]


def test_all_remedies_are_to_start_the_release_that_reads_all() -> None:
    # F1014 and F1015: 4.3 made the metadata.version, 4.4 the feature, 4.0 the type of record.
    image, seen = MetadataImage(), SeenRecords()
    image.put("feature", ("metadata.version",), {"level": 30})
    image.put("feature", ("share.version",), {"level": 2})
    seen.add(7, 28, 0, "ClearElrRecord")
    remedies = [each.remedy for each in refusals(image, "3.9", seen)]
    assert len(remedies) == 3
    assert all(remedy.startswith("start Kafka 4.4") for remedy in remedies)
