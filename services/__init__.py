"""Implementation of affidavit: eight services around one kernel. Users import `affidavit`, never this package."""
