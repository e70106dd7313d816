"""A soak: everything at once for as long as one likes, with the sums checked at the end.

tools/soak --> main.py     the command
stage.py                   a store, who works on it, one fault after the other; then the checks
plan.py                    what happens next
place.py                   what a store is to a stage, and how it is put in trouble; each of them:
one_server.py, clustered.py, watched.py
crew.py                    the processes of a stage: started, killed, asked to end, followed
writers.py, kinds.py       those that record (`python -m soak.writers`)
watching.py                those that read and clean (`python -m soak.watching`)
journal.py                 what a writer writes down before it records it, and how that is read
moments.py                 a clock that can be set, and stands still while an event is noted
checks.py                  recorded against stored
explained.py               what recorders call lost or uncertain, against what can be
readings.py                what readers were told, against what was there at that moment
asked.py                   what is answered in the end, against what the keys hold
residue.py                 what is in the store that should not
report.py                  tables
"""
