# SPDX-License-Identifier: GPL-2.0
"""A second apt: other suites of the machine's own archive, own lists and cache.

The system's apt keeps its sources, lists and cache; nothing here needs root.
Where this does not do, KSRC= and QEMU= name a kernel and a QEMU.
"""
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from .. import paths, proc
from ..ui import die

HOME = paths.BUILD / "apt"
KEYRINGS = {"debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
            "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg"}
OPTIONS = ["Dir::Etc::sourceparts=/dev/null", "Dir::Etc::preferencesparts=/dev/null",
           "Dir::Etc::preferences=/dev/null",
           "APT::Default-Release=/./",		# the newest, of whichever suite
           "APT::Sandbox::User=root",		# another user may not get into our folders
           "Debug::NoLocking=true",		# locks would be the system's
           # Never take what no signature vouches for, whatever the system's apt allows.
           "APT::Get::AllowUnauthenticated=false", "Acquire::AllowInsecureRepositories=false",
           "Acquire::AllowWeakRepositories=false",
           "Acquire::AllowDowngradeToInsecureRepositories=false",
           "Acquire::Retries=2", "Acquire::Languages=none"]


def machine():
    """(distribution, codename) of the machine: ('debian', 'bookworm')."""
    found = platform.freedesktop_os_release()
    family = [found["ID"], *found.get("ID_LIKE", "").split()]
    return (next((one for one in family if one in KEYRINGS), family[0]),
            found.get("UBUNTU_CODENAME") or found.get("VERSION_CODENAME", ""))


def own_uri(said, codename, kind=""):
    """The distribution's archive of a kind of suites ("": the main one, "-security"), of
    what `apt-get update --print-uris` says."""
    for suite in (codename, "stable", "testing", "unstable", "sid"):
        found = re.search(rf"'((?!cdrom:)[^'\s]+)/dists/{re.escape(suite + kind)}/main/", said)
        if found:
            return found[1]
    return None


def by_kind(family, suites):
    """{kind: suites}: Debian keeps those for security in an archive of their own."""
    found = {}
    for suite in suites:
        own = family == "debian" and suite.endswith("-security")
        found.setdefault("-security" if own else "", []).append(suite)
    return found


def call(*words, cwd=None):
    return subprocess.run(words, cwd=cwd, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          env={**os.environ, "LC_ALL": "C.UTF-8"})


class Archive:
    """The distribution's archive with the suites given."""

    def __init__(self, name, suites):
        family, codename = machine()
        if not shutil.which("apt-get"):
            die("this machine has no apt-get", "on other distributions: KSRC=/path/to/linux-7.3 "
                "for the kernel, QEMU=/path/to/qemu-system-x86_64 for QEMU")
        said = call("apt-get", "update", "--print-uris").stdout
        lists, sources = HOME / name / "lists", HOME / f"{name}.sources"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        key = KEYRINGS.get(family, "")
        signed = f"Signed-By: {key}\n" if Path(key).is_file() else ""
        entries = []
        for kind, names in by_kind(family, suites).items():
            uri = own_uri(said, codename, kind)
            if not uri:
                die(f"apt has no entry for {family} {codename}{kind} main",
                    "add the distribution's archive to it, or use KSRC= and QEMU=")
            entries.append(f"Types: deb\nURIs: {uri}\nSuites: {' '.join(names)}\n"
                           f"Components: main\n{signed}")
        sources.write_text("\n".join(entries))
        self.options = [f"-o{one}" for one in (
            *OPTIONS, f"Dir::Etc::sourcelist={sources}", f"Dir::State::lists={lists}",
            f"Dir::Cache={HOME}/cache")]

    def newest(self, package):
        """(the newest version of a package or None, what was wrong with the lists)."""
        said = call("apt-get", *self.options, "update", "-q").stdout
        # No network at all is only a warning to apt.
        wrong = trouble(said) if re.search(r"(?m)^(E: |W: Failed to fetch)", said) else ""
        found = re.search(r"(?m)^Version: (\S+)", call(
            "apt-cache", *self.options, "-oDir::State::status=/dev/null", "show",
            "--no-all-versions", package).stdout)
        return found and found[1], wrong

    def get(self, folder, *words):
        """What apt-get WORDS downloads, in a folder that is emptied before."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "partial").mkdir(parents=True)
        done = call("apt-get", *self.options, f"-oDir::Cache::archives={folder}", "-q", "-y",
                    *words, cwd=folder)
        found = sorted(folder.glob("*.deb"))
        if done.returncode or not found:
            die(f"cannot download {words[-1]}: {trouble(done.stdout)}",
                "mend the network or the archive, then again")
        return found


def trouble(text):
    """apt's reason in one line."""
    lines = [re.sub(r"^[EW]: ", "", line) for line in text.splitlines()
             if re.match(r"[EW]: ", line) and "Problem unlinking" not in line]
    return lines[0] if lines else (text.strip().splitlines() or ["apt said nothing"])[-1]


def unpack(deb, folder):
    proc.run(["dpkg-deb", "-x", deb, folder], what=f"cannot unpack {deb}",
             how="check the free disk space, then again")
