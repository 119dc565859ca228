# SPDX-License-Identifier: GPL-2.0
"""Many boots, and records of what they gave."""
