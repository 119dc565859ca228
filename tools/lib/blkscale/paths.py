# SPDX-License-Identifier: GPL-2.0
"""Where things lie: the repository, what is built, kernels and results."""
import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Which base: nothing for the one of the series, or a folder of backports/, where only
# what differs is kept, under the same path as in ROOT.
BASE = os.environ.get("BASE") or ""
HOME = ROOT / "backports" / BASE if BASE else ROOT
SHARED = Path(os.environ.get("BUILD") or ROOT / "build").absolute()
BUILD = SHARED / BASE
TREES = {"base": BUILD / "base", "patched": BUILD / "tree"}
RESULTS = BUILD / "results"
BASE_FILE = HOME / "base"
SERIES_FILE = HOME / "series"
TESTS_CONFIG = "debug"	# of the kernels that the tests boot


def tree(kernel):
    """The source of a kernel: base, patched, or the folder itself."""
    return TREES.get(str(kernel)) or Path(kernel).absolute()


def obj(kernel, config="small"):
    return tree(kernel) / f"obj-{config}"


def bzimage(kernel, config="small"):
    return obj(kernel, config) / "arch/x86/boot/bzImage"


def system_map(kernel, config="small"):
    return obj(kernel, config) / "System.map"


def make(targets):
    """The command that makes targets of the Makefile on this base."""
    return f"make {targets}" + (f" BASE={BASE}" if BASE else "")


def fields(path):
    """A file of `name: value` lines; `#` starts a comment."""
    found = {}
    for line in Path(path).read_text().splitlines():
        name, colon, value = line.partition(":")
        if colon and not line.lstrip().startswith("#"):
            found[name.strip()] = value.strip()
    return found


def base_facts():
    """What the file `base` says: package, version, upstream, qemu..."""
    return {**fields(ROOT / "base"), **fields(BASE_FILE)}


def patch_lines(lines):
    """The lines of a series file that are no comments, stripped."""
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def backports():
    """The folders of the back-ports."""
    return sorted((ROOT / "backports").iterdir())


def find(name):
    """The file of a patch, letter or configuration: the base's own if it has one, else
    the one that all bases share."""
    return HOME / name if (HOME / name).is_file() else ROOT / name


def patches():
    """The patch files of the series, in order."""
    if not SERIES_FILE.exists():
        return []
    return [find(name)
            for name in patch_lines(SERIES_FILE.read_text().splitlines())]


def unmeasured(lines):
    """The names in the parts of a series file that have a line `# not measured`: no
    measured kernel runs what they change."""
    found, skip = set(), False
    for line in map(str.strip, lines):
        if line.startswith("# part:"):
            skip = False
        elif line.startswith("# not measured"):
            skip = True
        elif skip:
            found.update(patch_lines([line]))
    return found


def series_id(measured=False):
    """A short name for what the series changes, whatever its messages say; only in
    the kernel that is measured, if that is asked."""
    digest = hashlib.sha1()
    found = patches()
    if measured and found:
        lines = SERIES_FILE.read_text().splitlines()
        left_out = {find(name) for name in unmeasured(lines)}
        found = [patch for patch in found if patch not in left_out]
    for patch in found:
        _, diff, changes = patch.read_bytes().partition(b"\ndiff --git ")
        digest.update(diff + changes)
    return digest.hexdigest()[:12]
