# SPDX-License-Identifier: GPL-2.0
"""Finding in a kernel's console log what must not be there."""
import re
from pathlib import Path

from .. import paths

# A report begins the text of a line, after the time stamp and the word
# that some subsystems put before it ("watchdog: BUG: soft lockup").
_STAMP = r"^(?:<\d+>)?(?:\[[^\]]*\]\s*)*"
_START = _STAMP + r"(?:[\w.-]+: )?"

# After these the guest will not come to an end by itself.
STUCK = re.compile(_START + r"(?:"
    r"INFO: task .* blocked for more than"
    r"|INFO: (?:rcu\S* )?(?:self-)?detected .*stall"
    r"|BUG: (?:soft|hard) lockup|BUG: workqueue lockup"
    r"|Watchdog detected hard LOCKUP"
    r")")

TROUBLE = re.compile(STUCK.pattern + "|" + _START + r"(?:"
    r"Kernel panic|BUG:|BUG [\w-]+ \(|WARNING: |kernel BUG at"
    r"|(?:\w+: )?Oops|general protection fault|Unable to handle"
    r"|double fault|DEBUG_LOCKS_WARN_ON|KFENCE: |UBSAN: "
    r"|INFO: (?:possible|inconsistent|suspicious|trying to register)"
    r"|(?:list_(?:add|del)|refcount_t|ODEBUG|kobject_add_internal failed)\b.*"
    r"(?:corruption|underflow|saturated|use-after-free|freed|active|failed)"
    r"|\d+ locks? still held|unreferenced object|Out of memory"
    r"|VFS: Unable to mount root"
    r")")

RACE = re.compile(_STAMP + r"BUG: KCSAN: ")


# What a base says without our patches, too: how a report begins, and what its first
# lines name. In 6.12 the work that begins a freeze of NVMe queues does not end it.
_OF_BASE = {"6.12": ("BUG: workqueue leaked", "nvme_start_freeze")}


def _of_base(lines):
    """Whether the base itself is to blame for the report that begins with these lines."""
    if paths.BASE not in _OF_BASE:
        return False
    begin, named = _OF_BASE[paths.BASE]
    return begin in lines[0] and any(named in line for line in lines)


def plain(line):
    """A line without its time stamp."""
    return re.sub(_STAMP, "", line)


def find(text, races=True):
    """The first line (from 1) of the report in a console log, or None.
    races: a data race counts."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if TROUBLE.search(line) and (races or not RACE.search(line)) and \
                not _of_base(lines[number - 1:number + 5]):
            return number
    return None


def stuck(text):
    return any(STUCK.search(line) for line in text.splitlines())


def report(path, shown=6, races=True):
    """One line that names the place, then the report's first lines; or None."""
    try:
        text = Path(path).read_text(errors="replace").replace("\r", "")
    except OSError:
        return None
    number = find(text, races)
    if number is None:
        return None
    lines = text.splitlines()[number - 1:number - 1 + shown]
    head = plain(lines[0])
    return "\n    ".join([f"{path}:{number}: {head.strip()}", *lines])
