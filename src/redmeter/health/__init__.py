"""The state of a store and of its server, as `redmeter doctor` and the page show it.

doctor.py           examines a store, in two round trips
server.py           each server: version, settings, memory, replicas
writers.py          the processes that write, and their reports
writer_findings.py  findings about them
findings.py         findings about everything else
"""
