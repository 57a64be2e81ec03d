"""The files beside segments: indexes, checkpoints, snapshots, properties."""
