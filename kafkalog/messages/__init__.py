"""What stands in keys and values: the messages of Kafka's internal topics, by one interpreter over
schema data (docs/messages.md), and what schema registries write. Pure Python, no files.
"""
