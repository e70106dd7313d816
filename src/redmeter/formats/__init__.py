"""Text in, values out, and back. Pure: no files, no sockets."""
