"""Set a repository up for measuring: asv's configuration, a first workload, two workflows."""
