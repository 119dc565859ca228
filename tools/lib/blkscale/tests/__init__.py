# SPDX-License-Identifier: GPL-2.0
"""What the tests of the patched kernel share."""
