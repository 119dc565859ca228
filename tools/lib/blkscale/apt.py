# SPDX-License-Identifier: GPL-2.0
"""A second apt: other suites of the machine's own archive, own lists and cache.

The system's apt keeps its sources, lists and cache; nothing here needs root.
"""
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import paths, proc
from .ui import die

ETC = Path("/etc/apt")
HOME = paths.BUILD / "apt"
KEYRINGS = {"debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
            "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg"}
# Never take what no signature vouches for, whatever the system's apt allows.
STRICT = ["APT::Get::AllowUnauthenticated=false",
          "Acquire::AllowInsecureRepositories=false",
          "Acquire::AllowWeakRepositories=false",
          "Acquire::AllowDowngradeToInsecureRepositories=false",
          "Acquire::Retries=2", "Acquire::Languages=none"]


def os_release(path="/etc/os-release"):
    """(id, codename) of the distribution: ('debian', 'bookworm')."""
    found = {}
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition("=")
        found[name] = value.strip().strip('"')
    family = [found.get("ID", ""), *found.get("ID_LIKE", "").split()]
    name = next((one for one in family if one in KEYRINGS), family[0])
    return name, found.get("UBUNTU_CODENAME") or found.get("VERSION_CODENAME", "")


def deb822(text):
    """Entries of a .sources file: dicts with lower-case field names."""
    entries = []
    for part in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        entry, field = {}, None
        for line in part.splitlines():
            if line[:1] in " \t" and field:
                entry[field] += "\n" + line	# an embedded key goes over many lines
            elif ":" in line:
                field, _, value = line.partition(":")
                field = field.strip().lower()
                entry[field] = value.strip()
        if entry.get("enabled", "yes").lower() not in ("no", "false"):
            entries.append(entry)
    return entries


def one_line(text):
    """Entries of a sources.list, in the same form."""
    entries = []
    for line in text.splitlines():
        at = re.match(r"\s*(deb|deb-src)\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if at:
            entry = dict(word.split("=", 1) for word in (at[2] or "").lower().split()
                         if "=" in word)
            if at[2] and "signed-by" in entry:	# paths keep their case
                entry["signed-by"] = re.search(r"(?i)signed-by=(\S+)", at[2])[1]
            entry.update(types=at[1], uris=at[3], suites=at[4], components=at[5].strip())
            entries.append(entry)
    return entries


def sources(etc=ETC):
    """All entries of an apt configuration."""
    parts = sorted((etc / "sources.list.d").glob("*"))
    found = []
    for path in [etc / "sources.list", *parts]:
        if path.is_file() and path.suffix in (".list", ".sources"):
            text = path.read_text(errors="replace")
            found += deb822(text) if path.suffix == ".sources" else one_line(text)
    return found


def own_entry(entries, codename):
    """The first entry that is the distribution's main archive, or None."""
    for suites in ([codename], ["stable", "testing", "unstable", "sid"]):
        for entry in entries:
            if ("deb" in entry.get("types", "").split()
                    and "main" in entry.get("components", "").split()
                    and set(suites) & set(entry.get("suites", "").split())
                    and not entry.get("uris", "").startswith("cdrom:")):
                return entry
    return None


def entry_text(entry, suite, keyring):
    """A deb822 entry for another suite of the same archive."""
    signed = entry.get("signed-by") or keyring
    fields = {"Types": "deb", "URIs": entry["uris"], "Suites": suite, "Components": "main"}
    if signed:
        fields["Signed-By"] = signed
    if entry.get("check-valid-until"):
        fields["Check-Valid-Until"] = entry["check-valid-until"]
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


class Archive:
    """The distribution's archive with the suites given."""

    def __init__(self, name, suites):
        self.family, self.codename = os_release()
        if not shutil.which("apt-get"):
            die("this machine has no apt-get", "on other distributions: KSRC=/path/to/linux-7.3 "
                "for the kernel, QEMU=/path/to/qemu-system-x86_64 for QEMU")
        entry = own_entry(sources(), self.codename)
        if not entry:
            die(f"no entry for {self.codename} main was found in {ETC}",
                "add the distribution's archive to apt, or use KSRC= and QEMU=")
        keyring = KEYRINGS.get(self.family, "")
        keyring = keyring if Path(keyring).is_file() else ""
        self.name, self.suites = name, suites
        self.file = HOME / f"{name}.sources"
        self.lists, self.cache = HOME / name / "lists", HOME / "cache"
        for folder in (self.lists / "partial", self.cache / "archives/partial"):
            folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(entry_text(entry, suite, keyring) for suite in suites)
        self.file.write_text(text)

    def options(self):
        found = [f"Dir::Etc::sourcelist={self.file}", "Dir::Etc::sourceparts=/dev/null",
                 "Dir::Etc::preferencesparts=/dev/null", "Dir::Etc::preferences=/dev/null",
                 f"Dir::State::lists={self.lists}", f"Dir::Cache={self.cache}",
                 # All locks would be the system's; our folders are ours alone.
                 "Debug::NoLocking=true", *STRICT]
        if os.geteuid() == 0 and not readable_by_others(HOME):
            found.append("APT::Sandbox::User=root")
        return [word for option in found for word in ("-o", option)]

    def _apt(self, program, *args, cwd=None):
        return subprocess.run([program, *self.options(), *args], cwd=cwd, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace",
                              env={**os.environ, "LC_ALL": "C.UTF-8"})

    def update(self):
        """Fetch the suites' lists; returns '' or what was wrong."""
        done = self._apt("apt-get", "update", "-q")
        # No network at all is only a warning to apt.
        bad = done.returncode or re.search(r"(?m)^(E: |W: Failed to fetch)", done.stdout)
        return trouble(done.stdout) if bad else ""

    def newest(self, package, version=""):
        """The newest version of a package that begins with version, or None."""
        done = self._apt("apt-cache", "madison", package)
        found = [line.split("|")[1].strip() for line in done.stdout.splitlines()
                 if line.count("|") == 2 and line.split("|")[0].strip() == package]
        fitting = [one for one in found if one.partition(":")[2].startswith(version)
                   or one.startswith(version)]
        return fitting[0] if fitting else None	# madison sorts, newest first

    def holds(self, suite, package, version):
        """Whether a suite has this version of a package."""
        done = self._apt("apt-cache", "madison", package)
        return any(f" {version} " in line and f" {suite}/" in line
                   for line in done.stdout.splitlines())

    def download(self, package, version, folder):
        """Fetch one package file, checked against the signed lists."""
        folder.mkdir(parents=True, exist_ok=True)
        said = self._apt("apt-cache", "show", f"{package}={version}").stdout
        wanted = re.search(r"(?m)^SHA256: (\w{64})$", said)
        pattern = f"{package}_{version.replace(':', '%3a')}_*.deb"
        for old in folder.glob(pattern):
            # apt resumes a short file, and believes one of the right length.
            if not wanted or sha256(old) != wanted[1]:
                old.unlink()
        done = self._apt("apt-get", "download", "-q", f"{package}={version}", cwd=folder)
        if done.returncode:
            die(f"cannot download {package} {version}: {trouble(done.stdout)}",
                "mend the network or the archive, then again")
        return next(folder.glob(pattern))

    def download_with_needs(self, package, suite):
        """Fetch a package and what it needs that is not installed."""
        archives = self.cache / "archives"
        shutil.rmtree(archives, ignore_errors=True)
        (archives / "partial").mkdir(parents=True)
        done = self._apt("apt-get", "install", "-q", "-y", "--download-only", "--reinstall",
                         "--no-install-recommends", "-t", suite, package)
        found = sorted(archives.glob("*.deb"))
        if done.returncode or not found:
            die(f"cannot download {package} from {suite}: {trouble(done.stdout)}",
                "mend the network or the archive, then again")
        return found


def sha256(path):
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def readable_by_others(folder):
    """Whether the user _apt, as which apt downloads, can get into folder."""
    return all(os.stat(one).st_mode & 0o005 == 0o005 for one in [folder, *folder.parents])


def trouble(text):
    """apt's reason in one line."""
    lines = [re.sub(r"^[EW]: ", "", line) for line in text.splitlines()
             if re.match(r"[EW]: ", line) and "Problem unlinking" not in line]
    return lines[0] if lines else (text.strip().splitlines() or ["apt said nothing"])[-1]


def unpack(deb, folder):
    proc.run(["dpkg-deb", "-x", deb, folder], what=f"cannot unpack {deb}",
             how="remove the file and start again")
