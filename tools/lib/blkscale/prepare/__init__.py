# SPDX-License-Identifier: GPL-2.0
"""The host, the sources, the series and the kernels."""
