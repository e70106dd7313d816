"""Servers: which server a command goes to, the exchange with it, and the meaning of its replies.

A `Link` exchanges commands; an error is a reply. Nothing here imports from the rest of store/.
"""
