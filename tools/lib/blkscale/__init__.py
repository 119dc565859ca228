# SPDX-License-Identifier: GPL-2.0
"""What the programs under tools/ share."""
