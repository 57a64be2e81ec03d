"""A read-only server of Kafka's protocol over log directories (docs/serve.md)."""
