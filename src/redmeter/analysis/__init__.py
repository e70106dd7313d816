"""Questions over values, and over the texts of messages. Pure: no files, no sockets, no threads."""
