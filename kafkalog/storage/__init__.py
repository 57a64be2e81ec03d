"""What a log directory is: names, files, partitions, segments, and where a log begins and ends."""
