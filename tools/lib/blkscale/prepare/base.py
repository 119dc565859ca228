# SPDX-License-Identifier: GPL-2.0
"""The kernel source that the series is kept for: build/tree and build/base."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from .. import paths, proc
from ..ui import die, note
from . import apt, git

TREE, BASE = paths.TREES["patched"], paths.TREES["base"]
RECORD = paths.BUILD / "base.version"
DOWNLOADS = paths.BUILD / "dl"
NEED = 5 * 10 ** 9	# bytes: the package, two work trees, git's objects


def makefile_version(text):
    """'7.3.4', '7.3.0-rc2': the version in a kernel's top Makefile, or ''."""
    part = dict(re.findall(r"(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(.*)$", text))
    if not part.get("VERSION", "").isdigit() or "SUBLEVEL" not in part:
        return ""
    return "{VERSION}.{PATCHLEVEL}.{SUBLEVEL}{EXTRAVERSION}".format(**{"EXTRAVERSION": "", **part})


def fits(version, wanted):
    """Whether version is wanted itself or one of its point releases."""
    return re.match(re.escape(wanted) + r"(?![0-9])", version) is not None


def version_of(tree):
    """The version of the kernel source in tree; ends the program if it is none."""
    makefile = Path(tree) / "Makefile"
    found = makefile_version(makefile.read_text(errors="replace")) if makefile.is_file() else ""
    if not found or not (Path(tree) / "block/blk-mq-sched.c").is_file():
        die(f"{tree} is not a Linux kernel tree", "give KSRC=/path to the top of one")
    return found


def check_version(version, where):
    wanted = paths.base_facts()["version"]
    if not fits(version, wanted):
        die(f"{where} is Linux {version}, and the series is kept for {wanted}.x",
            f"check out a {wanted} release there, or another KSRC")


def label():
    """The base as records name it: the package's version, or the KSRC's."""
    return RECORD.read_text().strip() if RECORD.exists() else "?"


def ksrc_label(ksrc, version):
    if git.is_repo(ksrc):
        return f"{version}+g{git.rev(ksrc, 'HEAD')[:12]}"
    return f"{version}+ksrc"


def need_space(size):
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(paths.BUILD).free
    if free < size:
        die(f"{paths.BUILD} needs {size / 1e9:.0f} GB and has {free / 1e9:.1f} GB free",
            "free some, or BUILD=/folder/on/another/disk")


def pipe(first, second, what):
    """first | second."""
    one = subprocess.Popen(first, stdout=subprocess.PIPE, env=git.env())
    two = subprocess.run(second, stdin=one.stdout, stderr=subprocess.PIPE, text=True)
    one.stdout.close()
    if one.wait() or two.returncode:
        words = (two.stderr or "the first half failed").strip().splitlines()
        die(f"{what}: {words[-1] if words else 'no reason given'}",
            "check the free disk space, then again")


def copy_ksrc(ksrc, into):
    """The files of the user's tree; of a git tree what HEAD has."""
    if git.is_repo(ksrc):
        if git.git(ksrc, "status", "--porcelain", "-uno").strip():
            note(f"{ksrc} has changes that are not committed: they are left out")
        pipe(["git", "-C", str(ksrc), "archive", "HEAD"], ["tar", "-x", "-C", str(into)],
             f"cannot copy {ksrc}")
        return
    if (ksrc / ".config").exists() or (ksrc / "include/config").exists():
        die(f"{ksrc} has been built in", f"make -C {ksrc} mrproper, or give a clean tree")
    pipe(["tar", "-c", "-C", str(ksrc), "--exclude-vcs", "--exclude=./obj-*", "."],
         ["tar", "-x", "-C", str(into)], f"cannot copy {ksrc}")


def from_ksrc(into):
    """Take the user's tree; returns its label."""
    ksrc = Path(os.environ["KSRC"]).absolute()
    version = version_of(ksrc)
    check_version(version, ksrc)
    copy_ksrc(ksrc, into)
    return ksrc_label(ksrc, version)


def from_archive(into):
    """Fetch and unpack the distribution's source package; returns its version."""
    facts = paths.base_facts()
    package, wanted = facts["package"], facts["version"]
    else_how = f"or use a tree of yours: KSRC=/path to Linux {wanted}.x"
    family, name = apt.machine()
    suites = [name, f"{name}-updates"] if family == "ubuntu" else facts["suite"].split()
    archive = apt.Archive("base", suites)
    version, wrong = archive.newest(package)
    if not version:
        if wrong:
            die(f"cannot read the {family} archive: {wrong}", f"mend the network, {else_how}")
        die(f"the {family} archive ({', '.join(suites)}) has no {package} {wanted}.x",
            f"take the version that `base` names from elsewhere: {else_how[3:]}")
    note(f"fetching {package} {version}, about 170 MB")
    deb, = archive.get(DOWNLOADS, "download", f"{package}={version}")
    half = DOWNLOADS / "unpacked"
    shutil.rmtree(half, ignore_errors=True)
    apt.unpack(deb, half)
    tar = next(half.glob("usr/src/linux-source-*.tar.*"), None)
    if not tar:
        die(f"{deb} holds no kernel source", f"remove it and start again, {else_how}")
    proc.run(["tar", "-xf", tar, "-C", into, "--strip-components=1"],
             what=f"cannot unpack {tar}", how="check the free disk space, then again")
    shutil.rmtree(half)
    check_version(version_of(into), package)
    return version


def make_repo(tree):
    """One commit with every file, tagged base, on the branch series."""
    name, mail = git.AUTHOR
    os.environ.update(TZ="UTC")
    git.git(tree, "init", "-q", "-b", "series")
    for key, value in (("user.name", name), ("user.email", mail)):
        git.git(tree, "config", key, value)
    # -f: the kernel's .gitignore names a few files that its releases carry.
    git.git(tree, "-c", "core.fsync=none", "add", "-A", "-f",
            what=f"cannot make a git tree of {tree}", how="check the free disk space, then again")
    stamp = "2000-01-01T00:00:00+0000"
    git.git(tree, "-c", f"user.name={name}", "-c", f"user.email={mail}", "commit", "-q",
            f"--date={stamp}", "-m", f"Linux {version_of(tree)}")
    git.git(tree, "tag", "base")


def make_tree():
    """build/tree from nothing: all in a folder aside, renamed when complete."""
    need_space(NEED)
    half = TREE.with_name("tree.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    found = from_ksrc(half) if os.environ.get("KSRC") else from_archive(half)
    make_repo(half)
    RECORD.write_text(found + "\n")
    half.rename(TREE)


def make_worktree():
    """build/base, the source without the series."""
    need_space(NEED // 2)
    shutil.rmtree(BASE, ignore_errors=True)
    git.git(TREE, "worktree", "prune")
    half = BASE.with_name("base.half")
    shutil.rmtree(half, ignore_errors=True)
    git.git(TREE, "worktree", "add", "-q", "-f", "--detach", half, "base",
            what=f"cannot check out {BASE}", how="check the free disk space, then again")
    git.git(TREE, "worktree", "move", half, BASE)


def worktree_good():
    if not (BASE / "Makefile").is_file():
        return False
    if not git.is_repo(BASE):	# the repository was moved
        git.ask(TREE, "worktree", "repair", BASE)
    return git.rev(BASE, "HEAD") == git.rev(TREE, "base") and git.is_repo(BASE)


def guess_record():
    """For a tree made by hand: the package in dl/, else what its Makefile says."""
    version = makefile_version(git.git(TREE, "show", "base:Makefile"))
    package = paths.base_facts()["package"]
    for deb in DOWNLOADS.glob(f"{package}_{version}-*.deb"):
        version = deb.name.split("_")[1].replace("%3a", ":")
    RECORD.write_text(version + "\n")


def ensure():
    """Make what is missing; returns the base's label."""
    if not (TREE.exists() and git.is_repo(TREE) and git.rev(TREE, "base")):
        if TREE.exists() and any(TREE.iterdir()):
            die(f"{TREE} is there, but has no tag `base`",
                "move it away; nothing in it is used")
        make_tree()
    if not RECORD.exists():
        guess_record()
    check_version(makefile_version(git.git(TREE, "show", "base:Makefile")), TREE)
    refuse_other_ksrc()
    if not worktree_good():
        make_worktree()
    return label()


def refuse_other_ksrc():
    ksrc = os.environ.get("KSRC")
    if not ksrc:
        return
    version = version_of(ksrc)
    check_version(version, ksrc)
    wanted = ksrc_label(Path(ksrc).absolute(), version)
    if wanted != label():
        die(f"{paths.BUILD} was made from {label()}, and KSRC is {wanted}",
            "give BUILD=/another/folder, or leave KSRC out")
