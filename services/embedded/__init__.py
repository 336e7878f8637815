"""One machine: the real servers as child processes on loopback, all state below one folder, roles in one process or apart."""
