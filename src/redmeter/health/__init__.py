"""The state of a store and of its server, as `redmeter doctor` and the page show it.

doctor.py           examines a store, in two round trips
server.py           each server: version, settings, memory, replicas
writers.py          the processes that write, their reports, and findings about them
findings.py         findings about everything else
"""
