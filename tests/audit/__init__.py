"""Audits: a black box that measures a running affidavit on real corpora through its contracts alone."""
