# SPDX-License-Identifier: GPL-2.0
"""Configuring and building kernels."""
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .. import paths, proc
from ..ui import die, note
from . import git

CONFIGS = paths.ROOT / "tools/kernel/configs"
MODULE = paths.ROOT / "tools/manycore/tickdisk"
COMPILED = re.compile(r"^\s+(?:HOST)?(?:CC|AS|HOSTCC)\b")
WARNING = re.compile(r"^(?:\.\./)*([^\s:]+):\d+(?::\d+)?: (?:warning|error):")
COUNTED = re.compile(r"(?:block/[^/]+|lib/sbitmap)\.c$")
# Nothing of the machine or the hour gets into a kernel: the same source, the same image.
FIXED = ["LOCALVERSION=", "KBUILD_BUILD_USER=block", "KBUILD_BUILD_HOST=scaling",
         "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970", "KBUILD_BUILD_VERSION=1"]


def fragments(config):
    """The files of a configuration: `debug` is small and debug, `a+b` is small, a and b."""
    names = ["small"] + [name for name in config.split("+") if name != "small"]
    found = [paths.find((CONFIGS / f"{name}.config").relative_to(paths.ROOT))
             for name in names]
    for path in found:
        if not path.is_file():
            known = sorted(p.stem for p in CONFIGS.glob("*.config"))
            die(f"there is no kernel configuration '{path.stem}'",
                f"known are {', '.join(known)}; join several with +")
    return found


def options(text):
    """{option: value} of a fragment or .config; not set is 'n'."""
    found = {}
    for line in text.splitlines():
        unset = re.match(r"# (CONFIG_\w+) is not set$", line)
        is_set = re.match(r"(CONFIG_\w+)=(.*)$", line)
        if unset:
            found[unset[1]] = "n"
        elif is_set:
            found[is_set[1]] = is_set[2].strip()
    return found


def not_taken(wanted, have):
    """What the fragments ask for and the .config does not have, as 'option=wanted (is x)'."""
    return [f"{option}={value} (is {have.get(option, 'n')})"
            for option, value in wanted.items() if have.get(option, "n") != value]


def make(tree, config, *more):
    """The make command for a kernel's object folder.

    The folder lies directly below its source and is named relatively: no path
    of this machine gets into a command line, and ccache hits across trees.
    """
    cc = "ccache gcc" if shutil.which("ccache") else "gcc"
    return ["make", "-C", str(tree), f"O=obj-{config}", f"-j{os.cpu_count()}",
            f"CC={cc}", *FIXED, *counted(tree, config), *more]


def counted(tree, config):
    """Words for make: with gcov.config, files that the series changes count their lines.

    Without early inlining, as counting comes after it: what it does away with has no count.
    """
    if "gcov" not in config.split("+"):
        return []
    stems = [Path(name).stem for name in changed_files(tree) if COUNTED.match(name)]
    return [word for stem in stems
            for word in (f"GCOV_PROFILE_{stem}.o=y", f"CFLAGS_{stem}.o=-fno-early-inlining")]


def env():
    found = {k: v for k, v in os.environ.items()
             if not k.startswith(("MAKE", "MFLAGS", "KBUILD_", "GIT_", "CONFIG"))
             and k not in ("KERNEL", "O", "M", "W", "C", "V", "ARCH", "CROSS_COMPILE", "BUILD",
                       "BASE")}
    found.update(CCACHE_NOHASHDIR="1", LC_ALL="C.UTF-8")
    return found


@contextlib.contextmanager
def lock(tree, config):
    """One build at a time in an object folder."""
    with open(Path(tree) / f".obj-{config}.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"another build of {tree}/obj-{config} is running: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def changed_files(tree):
    """What differs in the work tree from the base."""
    return git.git(tree, "diff", "--name-only", "--no-renames", "base").split()


def source_id(tree):
    """Of what a kernel is built from: the differences from the base, by content."""
    return hashlib.sha1(git.raw(tree, "diff", "base", "--", ":!tools",
                                ":!Documentation")).hexdigest()


def is_of_source(tree, config):
    """Whether the kernel was built from the source as it is now; manycore/parts keeps
    kernels without their source."""
    if not (tree / "Kbuild").exists():
        return True
    mark = paths.obj(tree, config) / ".source"
    return mark.exists() and mark.read_text() == source_id(tree)


def added_options():
    """Kernel options that the series adds: base has them not."""
    return {f"CONFIG_{name}" for patch in paths.patches()
            for name in re.findall(r"(?m)^\+config (\w+)$", patch.read_text())}


def configure(tree, config):
    """Write .config from tinyconfig and the fragments, when they changed."""
    obj = paths.obj(tree, config)
    parts = fragments(config)
    wanted = {}
    for part in parts:
        wanted.update(options(part.read_text()))
    kconfig = git.git(tree, "diff", "base", "--", ":(glob)**/Kconfig*")
    stamp = hashlib.sha1("".join([p.read_text() for p in parts] + [kconfig]).encode())
    mark = obj / ".fragments"
    if (obj / ".config").exists() and mark.exists() and mark.read_text() == stamp.hexdigest():
        return
    obj.mkdir(exist_ok=True)
    log = obj.parent / f".obj-{config}.config-log"
    what = f"configuring {obj} failed"
    proc.run(make(tree, config, "tinyconfig"), log=log, what=what, env=env())
    proc.run([f"{tree}/scripts/kconfig/merge_config.sh", "-m", "-O", obj, obj / ".config", *parts],
             log=log, what=what, env=env())
    proc.run(make(tree, config, "olddefconfig"), log=log, what=what, env=env())
    if tree != paths.tree("patched"):
        for option in added_options():
            wanted.pop(option, None)
    missed = not_taken(wanted, options((obj / ".config").read_text()))
    if missed:
        die(f"kernel options did not take effect: {', '.join(missed[:4])}"
            + (f" and {len(missed) - 4} more" if len(missed) > 4 else ""),
            f"give their dependencies too, in {CONFIGS}")
    mark.write_text(stamp.hexdigest())


def age_sources(tree, changed):
    """Make sources older than seeded objects, and the changed ones newer."""
    if not list(Path(tree).glob("obj-*/.config")):
        for name in git.raw(tree, "ls-files", "-z").decode(errors="surrogateescape").split("\0"):
            with contextlib.suppress(OSError):
                os.utime(Path(tree) / name, (0, 10 ** 9), follow_symlinks=False)
    for name in changed:
        with contextlib.suppress(FileNotFoundError):
            os.utime(Path(tree) / name)


def seed_of(tree, config):
    """(tree, its objects) that can be the start of this one's, or None.

    Objects of the configuration without its last fragment do, too: make knows
    which files an option concerns.
    """
    for near in (config, config.rpartition("+")[0]):
        for other in sorted(paths.TREES.values(), key=lambda other: other != tree):
            # Their differences and ours are rebuilt; so both must count from one base.
            if near and (paths.obj(other, near) / "vmlinux").exists() \
                    and git.rev(other, "base") == git.rev(tree, "base"):
                return other, paths.obj(other, near)
    return None


def seed(tree, config):
    """Start from other objects, so that only what differs is built."""
    obj = paths.obj(tree, config)
    found = None if obj.exists() else seed_of(tree, config)
    if found:
        other, objects = found
        half = obj.with_name(obj.name + ".half")
        shutil.rmtree(half, ignore_errors=True)
        if other != tree:
            age_sources(tree, {*changed_files(tree), *changed_files(other)})
        proc.run(["cp", "-a", "--reflink=auto", objects, half],
                 what=f"cannot copy {objects} to {half}", how="is the disk full?")
        # A build that is ended must not leave the other kernel as this one.
        for image in ("vmlinux", "arch/x86/boot/bzImage"):
            (half / image).unlink(missing_ok=True)
        half.rename(obj)


def expected(tree, config):
    """About how many files the build will compile; 0 if it cannot be said."""
    obj = paths.obj(tree, config)
    if (obj / "vmlinux").exists():
        return 0
    for other in (obj, *(paths.obj(t, config) for t in paths.TREES.values())):
        if (other / ".compiled").exists():
            return int((other / ".compiled").read_text())
    return 1550


def check_tree(tree):
    if not (tree / "Kbuild").exists() or not git.rev(tree, "base"):
        die(f"{tree} is not a kernel tree with a tag `base`",
            f"run `{paths.make('tree')}` first")


def build(tree, config, steps=None, pause=20):
    """Build bzImage, modules and the test module; ends the program if it fails."""
    tree = Path(tree)
    with lock(tree, config):
        seed(tree, config)
        configure(tree, config)
        source = source_id(tree)
        log = tree / f".obj-{config}.log"
        of = expected(tree, config)
        done = follow(make(tree, config, "bzImage", "modules"), log, steps, of, pause)
        if of:
            (paths.obj(tree, config) / ".compiled").write_text(str(done))
        refuse_warnings(tree, log)
        build_module(tree, config)
        (paths.obj(tree, config) / ".source").write_text(source)


def follow(command, log, steps, of, pause, more=None):
    """Run make with its output in log; tell how far it is from time to time."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT,
                                   env={**env(), **(more or {})},
                                   start_new_session=True)
    told = time.monotonic()
    try:
        while process.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - told > pause:
                told = time.monotonic()
                done = compiled(log)
                if steps and of:
                    steps.tell(min(done, of), of, "files compiled")
                elif steps:	# a rebuild: what differs is not known before
                    note(f"      {done} files compiled")
    except BaseException:
        end_make(process)
        raise
    if process.returncode:
        die(f"the kernel does not build: {first_error(log)}", f"see {log}")
    return compiled(log)


def end_make(process):
    """Let make take away what it has half written, else it looks finished."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)
    proc.kill_group(process)


def compiled(log):
    with open(log, errors="replace") as lines:
        return sum(1 for line in lines if COMPILED.match(line))


def first_error(log):
    """The line of a build log that says what went wrong."""
    lines = Path(log).read_text(errors="replace").splitlines()
    for pattern in (r"error:|undefined reference|ERROR: ", r"\*\*\*", r"\S"):
        for line in lines:
            if re.search(pattern, line):
                return line.strip()[:300]
    return "make said nothing"


def warnings(text, touched):
    """The warning lines of a build log that lie in the files touched."""
    found = []
    for line in text.splitlines():
        at = WARNING.match(line)
        if at and os.path.normpath(at[1]) in touched and line not in found:
            found.append(line.strip())
    return found


def refuse_warnings(tree, log):
    touched = set(changed_files(tree))
    found = warnings(log.read_text(errors="replace"), touched)
    if found:
        for name in touched:
            # Else the next make finds the object there and says nothing.
            if any(name in line for line in found) and (tree / name).exists():
                os.utime(tree / name)
        die(f"a warning in a file that the series changes: {found[0]}",
            f"mend it ({len(found)} in all, see {log})")


def build_module(tree, config):
    """The disk in tick time: test code, built beside the kernel, never part of it."""
    if not MODULE.is_dir():
        return
    ours = paths.obj(tree, config) / "ours"
    ours.mkdir(exist_ok=True)
    for name in ("Kbuild", "tickdisk.c"):	# kernels before 6.13 build where the source is
        shutil.copy2(MODULE / name, ours / name)
    log = tree / f".obj-{config}.ours-log"
    follow(make(tree, config, f"M={ours}", "modules"), log, None, 0, 0)
