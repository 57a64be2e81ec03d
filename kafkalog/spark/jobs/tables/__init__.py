"""The tables of `reconstruct_state` and `ingest_topics`."""
