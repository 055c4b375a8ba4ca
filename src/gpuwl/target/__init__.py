"""Which cluster a command works on, and the connection to it."""
