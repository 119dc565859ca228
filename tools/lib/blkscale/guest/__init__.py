# SPDX-License-Identifier: GPL-2.0
"""Booting guests, and what their kernels and QEMU's plugin say."""
