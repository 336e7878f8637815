"""The vector engine: a process of its own around Qdrant Edge, which holds the interpreter's lock in every call.

It imports nothing of the kernel and nothing of the contracts, so that it starts fast and stays small.
"""
