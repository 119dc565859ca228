# SPDX-License-Identifier: GPL-2.0
"""A QEMU whose plugin interface the many-core measurement can use."""
import os
import re
import shutil
import subprocess

from .. import paths
from ..ui import die, note
from . import apt

PROGRAM = "qemu-system-x86_64"
HOME = paths.SHARED / "qemu"


def numbers(version):
    """'10.0.2' -> (10, 0, 2), for comparing."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def unpacked(home=HOME):
    """(argv prefix, environment) for a QEMU that was unpacked into home."""
    usr = home / "usr"
    # Some packages still install below /lib.
    libraries = sorted({str(lib.parent) for top in (usr, home)
                        for lib in top.glob("lib/*/lib*.so.*")})
    argv = [str(usr / "bin" / PROGRAM)]
    for data in ("share/qemu", "share/seabios", "lib/ipxe/qemu"):
        if (usr / data).is_dir():
            argv += ["-L", str(usr / data)]
    return argv, {"LD_LIBRARY_PATH": ":".join(libraries)}


def version(argv, env):
    """The version that a QEMU says it has, or None if it does not run."""
    try:
        done = subprocess.run([argv[0], "--version"], env={**os.environ, **env},
                              capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"version (\d+\.\d+(?:\.\d+)?)", done.stdout)
    return found[1] if found and not done.returncode else None


def good(argv, env):
    found = version(argv, env)
    return bool(found) and numbers(found) >= numbers(paths.base_facts()["qemu"])


def present():
    """The command of a QEMU that is new enough and there already, or None."""
    named = os.environ.get("QEMU")
    if named:
        path = shutil.which(named)
        if not path or not good([path], {}):
            die(f"QEMU={named} is no {PROGRAM} of version "
                f"{paths.base_facts()['qemu']} or newer", "give another, or leave QEMU unset")
        return [path], {}
    system = shutil.which(PROGRAM)
    if system and good([system], {}):
        return [system], {}
    if (HOME / "usr/bin" / PROGRAM).exists() and good(*unpacked()):
        return unpacked()
    return None


def fetch():
    """Unpack a new enough QEMU from the distribution's archive into build/."""
    least = paths.base_facts()["qemu"]
    family, name = apt.machine()
    suites = [name, f"{name}-updates", f"{name}-backports"]
    other = f"install QEMU {least} or newer by other means and name it: QEMU=/path/to/{PROGRAM}"
    archive = apt.Archive("qemu", suites)
    found, wrong = archive.newest("qemu-system-x86")
    if not found:
        die(f"cannot read {family}'s archive: {wrong or 'it has no qemu-system-x86'}",
            f"mend the network, or {other}")
    if numbers(found.rpartition(":")[2]) < numbers(least):
        die(f"{family} {name} has QEMU {found}, and {least} is needed", other)
    note(f"fetching QEMU {found}")
    half = HOME.with_name("qemu.half")
    shutil.rmtree(half, ignore_errors=True)
    # with what it needs and is not installed
    for deb in archive.get(apt.HOME / "qemu/debs", "install", "--download-only", "--reinstall",
                           "--no-install-recommends", "qemu-system-x86"):
        apt.unpack(deb, half)
    if not good(*unpacked(half)):
        die(f"the QEMU unpacked in {half} does not run",
            f"run it by hand to see why, or {other}")
    shutil.rmtree(HOME, ignore_errors=True)
    half.rename(HOME)


def command():
    """(argv prefix, environment to add) of a QEMU that is new enough."""
    found = present()
    if not found:
        die(f"there is no {PROGRAM} {paths.base_facts()['qemu']} or newer",
            "run `make qemu`")
    return found
