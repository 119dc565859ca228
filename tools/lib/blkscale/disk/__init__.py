# SPDX-License-Identifier: GPL-2.0
"""Beside the disk, in a guest or on a machine of one's own."""
