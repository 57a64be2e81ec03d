"""The contents of keys and values: the messages of Kafka's internal topics, by one interpreter over
schema data (docs/messages.md), and the formats of schema registries. Pure Python, without files.
"""
