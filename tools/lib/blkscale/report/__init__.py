# SPDX-License-Identifier: GPL-2.0
"""Verdicts, tables, pictures and the documents made of records."""
