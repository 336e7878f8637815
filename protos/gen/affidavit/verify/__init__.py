"""Offline verifier of affidavit receipts.

Imports blake3, PyNaCl, cbor2 and the standard library only; it never talks to a server and needs nothing of ours but
the receipt's file and a keys file that was pinned beforehand.
"""

from affidavit.verify.errors import Refused
from affidavit.verify.verdict import Exit, Finding, Verdict
from affidavit.verify.verifier import verify_bundle

__all__ = ["Exit", "Finding", "Refused", "Verdict", "verify_bundle"]
