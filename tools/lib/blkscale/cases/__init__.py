# SPDX-License-Identifier: GPL-2.0
"""What can be measured, and which figures it gives."""
