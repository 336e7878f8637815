"""Stands in for an optimiser that has a lot to do."""

from __future__ import annotations

import time

if __name__ == "__main__":
    time.sleep(600)
