"""Starts a program that ends with its parent: `launcher.py SIGNAL PARENT USER PROGRAM ARGUMENTS...`.

A program of its own, since running Python code between fork and exec isn't safe in a process with threads. USER is a
name, or empty for no change; the program must be reachable for it, Python needn't be.
"""

import ctypes
import os
import pwd
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    signal, parent, user, *command = sys.argv[1:]
    if user:
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    # After the change of user, which would clear it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal))
    # The parent may have ended before the line above took effect.
    if os.getppid() != int(parent):
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606  (the caller's own program)
