# SPDX-License-Identifier: GPL-2.0
"""Tables as text for a terminal and as Markdown."""


class Table:
    """A title, a header, rows of text, and lines that go below."""

    def __init__(self, title, header, rows, notes=()):
        self.title, self.header = title, list(header)
        self.rows = [[str(cell) for cell in row] for row in rows]
        self.notes = list(notes)

    def text(self):
        lines = [self.header] + self.rows
        plain = [[cell.replace("**", "").replace("`", "") for cell in line]
                 for line in lines]
        widths = [max(map(len, column)) for column in zip(*plain)]
        shown = ["  ".join(cell.ljust(width) for cell, width
                           in zip(line, widths)).rstrip() for line in plain]
        shown.insert(1, "-" * max(map(len, shown)))
        return "\n".join([self.title] + shown + self.notes) + "\n"

    def markdown(self, level=3):
        lines = [self.header, ["---"] * len(self.header)] + self.rows
        shown = ["| " + " | ".join(line) + " |" for line in lines]
        notes = [note + "  " for note in self.notes]
        head = [f"{'#' * level} {self.title}", ""]
        return "\n".join(head + shown + [""] + notes).rstrip() + "\n"


def number(value, digits=3):
    """As many digits as say something: 0.913, 45.8, 2180, 40.6K."""
    if value is None:
        return "-"
    if abs(value) >= 10000:
        return f"{value / 1000:.{1 if abs(value) < 100000 else 0}f}K"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.{digits - 1}f}"


def ratio(new, old):
    """new / old, or None where it says nothing."""
    return new / old if new is not None and old else None


def times(value):
    return "" if value is None else f"x{value:.2f}"


def nearly(value):
    """The same, with a digit more for what is near 1."""
    return f"x{value:.3f}" if value and abs(value - 1) < 0.1 else times(value)


def change(old, new, form=number):
    """`84.1 -> 148`; a side that was not measured is left out."""
    if old is None or new is None:
        known = new if old is None else old
        return "" if known is None else form(known)
    return f"{form(old)} -> {form(new)}"
