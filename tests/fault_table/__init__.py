"""The fault table: what becomes of each event when a server loses data.

tools/faults --> main.py   the command, and the table
rows.py                    what is done to the servers
places.py                  the servers
writers.py                 what records, and what it knows of its events
"""
