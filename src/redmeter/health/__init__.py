"""The state of a store and of its server, as `redmeter doctor` and the page show it.

doctor.py           the list of checks; runs them in two round trips
check.py            what a check is: reads and findings
servers.py          the servers of a store: version, settings, memory, replicas; shards of a cluster
contents.py         the indexes, and a sample of the keys that each lists
upkeep.py           migration, types of indexes, cleaner, size, other stores
writers.py          the processes that write, their reports, and findings about them
"""
