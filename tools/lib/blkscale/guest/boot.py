# SPDX-License-Identifier: GPL-2.0
"""Booting a kernel under QEMU on the host's own root, and running a job in it."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths
from ..prepare import qemu
from ..prepare.kernel import is_of_source
from ..proc import kill_group, tail
from ..ui import die, note, span
from . import kernel_log

INIT = paths.ROOT / "tools/boot/init"
TROUBLE_STATUS = 70
KEPT = 200		# folders of earlier boots
TRACE = "qemu.trace"
LAST_WORDS = 30		# seconds for a guest that hangs to say where
GRACE = 60		# seconds for the rest of a report of something stuck, and RCU's
START = 150		# seconds until the job begins
NOT_STARTED = "the guest did not begin its job"
LOST_TIMER = "Possible timer handling issue"
STUCK = re.compile("detected stalls|blocked for more than")
RESULT = re.compile(r"^(?!#|TAP version|$)", re.M)	# of a job

# What every guest gets; later words win.  rcu: an emulated CPU that waits
# for the host's is no stall.  nmi: see _last_words().
APPEND = ("console=ttyS0 earlyprintk=serial root=r rootfstype=9p ro "
          "rootflags=trans=virtio,version=9p2000.L,msize=524288,cache=loose "
          "panic=-1 oops=panic loglevel=5 null_blk.nr_devices=0 "
          "rcupdate.rcu_cpu_stall_timeout=60 "
          "unknown_nmi_panic "
          # the same to newer and to older kernels
          "panic_sys_info=timers,blocked_tasks panic_print=0x84")


@dataclass
class Result:
    out: Path
    status: int = None		# the job's, or None: the guest wrote none
    trouble: str = None		# why the boot counts as failed, if it does
    report: str = None		# of the kernel, on the console
    stderr: str = ""		# QEMU's; a plugin prints there
    seconds: float = 0.0
    argv: list = field(default_factory=list)

    @property
    def console(self):
        return self.out / "console.log"

    @property
    def log(self):
        """What the job printed."""
        return self.out / "job.log"

    @property
    def ok(self):
        return self.status == 0 and not self.trouble


def _written(path):
    try:
        return path.stat().st_mtime
    except OSError:		# another program has just removed it
        return 0


def fresh_out(name="boot"):
    """A new folder for what a guest writes; the oldest of many go."""
    run = paths.BUILD / "run"
    run.mkdir(parents=True, exist_ok=True)
    for folder in sorted(run.iterdir(), key=_written)[:-KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
    stamp = time.strftime(f"{name}-%m%d-%H%M%S-")
    return Path(tempfile.mkdtemp(prefix=stamp, dir=run))


_good = set()


def image(kernel, config):
    """The kernel image: of a tree by name, of a tree, or the file itself."""
    given = Path(str(kernel))
    # The repository has a file that is called base.
    if str(kernel) not in paths.TREES and given.is_file():
        return given.absolute()
    found = paths.bzimage(kernel, config)
    if not found.exists():
        die(f"no kernel at {found}",
            f"build it: tools/kernel/build {kernel} {config}")
    # One image for all boots of a program, also if the source is edited meanwhile.
    built = (found, found.stat().st_mtime_ns)
    if built not in _good and not is_of_source(paths.tree(kernel), config):
        die(f"the kernel at {found} was not built from the source as it is now",
            f"build it: tools/kernel/build {kernel} {config}")
    _good.add(built)
    return found


# ------------------------------------------------------------- disks

def _disk(spec, number, out):
    """QEMU's arguments for TYPE[:KEY=VALUE,...], and the files behind it.

    size= is in MB, of each namespace; other keys that are not ours go to
    QEMU's device, the last one if there are more. bad=N: each Nth block of
    4 KiB in the first MB cannot be written.
    """
    kind, _, rest = spec.partition(":")
    opts = dict(word.partition("=")[::2] for word in rest.split(",") if word)
    try:
        size = int(opts.pop("size", 256))
        queues = int(opts.pop("queues", 1))
        spaces = int(opts.pop("namespaces", 1)) if kind == "nvme" else 1
        bad = int(opts.pop("bad", 256))
    except ValueError:
        die(f"device {spec}: size, queues, namespaces and bad are numbers")
    serial = f"blkscale{number}"
    drives = [f"disk{number}", *(f"disk{number}-{n}" for n in range(1, spaces))]
    controller = (f"nvme,id=ctrl{number},serial={serial},"
                  f"max_ioqpairs={queues}")
    devices = {
        "virtio-blk": [f"virtio-blk-pci,drive={drives[0]},serial={serial},"
                       f"num-queues={queues}"],
        "nvme": [f"nvme,drive={drives[0]},serial={serial},"
                 f"max_ioqpairs={queues}"] if spaces == 1 else
                [controller, *(f"nvme-ns,bus=ctrl{number},drive={drive}"
                               for drive in drives)],
        "zns": [controller, f"nvme-ns,bus=ctrl{number},drive={drives[0]},"
                "zoned=true,zoned.zone_size=4M"],
    }
    if kind not in devices or min(size, queues, spaces, bad) < 1:
        die(f"device '{spec}' is not known",
            "use virtio-blk, nvme or zns, with :size=MB,queues=N,bad=N, and "
            "nvme with namespaces=N")
    args, files = [], [out / f".{drive}" for drive in drives]
    for drive, path in zip(drives, files):
        with open(path, "wb") as file:
            file.truncate(size << 20)
        args += ["-drive", f"{_image(path, range(0, 256, bad))},if=none,"
                 f"id={drive},cache=unsafe,discard=unmap"]
    *first, last = devices[kind]
    last = ",".join([last, *(f"{k}={v}" for k, v in opts.items())])
    for device in [*first, last]:
        args += ["-device", device]
    return args, files


def _image(path, bad):
    if len(bad) < 2:
        return f"file={_comma(path)},format=raw"
    rules = "".join(f",inject-error.{n}.{word}" for n, block in enumerate(bad)
                    for word in ("event=none", "iotype=write", "errno=5",
                                 f"sector={8 * block}"))
    return ("driver=blkdebug,image.driver=raw,image.file.driver=file,"
            f"image.file.filename={_comma(path)}{rules}")


def _comma(path):
    return str(path).replace(",", ",,")


# ------------------------------------------------------- the command line

# counted: the guest's clock counts instructions (4 ns each, fast: 2) and skips
# idle time; vCPUs take turns.  What a slow disk does then repeats, however busy the
# host is.
SPEED = {"kvm": ["-accel", "kvm"],
         "tcg": ["-accel", "tcg,thread=multi"],
         "counted": ["-accel", "tcg,thread=single",
                     "-icount", "shift=2,sleep=off"],
         "counted-fast": ["-accel", "tcg,thread=single",
                          "-icount", "shift=1,sleep=off"]}
ACCELERATORS = ("auto", *SPEED)


def _machine(kernel, cpus, mem, accel, cpu_model, append, pcie):
    root = ("local,id=r,path=/,security_model=none,readonly=on,"
            "multidevs=remap")
    machine = ["-machine", "q35"] if pcie else []
    speed = SPEED[accel]
    words = f'{APPEND} init="{INIT}" {append}'.strip()
    return [*speed, "-cpu", cpu_model, "-smp", str(cpus), "-m", f"{mem}M",
            "-nodefaults", "-display", "none", "-no-reboot",
            "-kernel", str(kernel), "-append", words, *machine,
            "-fsdev", root, *_share("r", pcie)]


def _share(tag, pcie):
    device = f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"
    if not pcie:
        return ["-device", device]
    # a root file system must outlive a suspend, which takes PCIe
    port, chassis = f"port-{tag}", {"r": 1, "out": 2}[tag]
    return ["-device", f"pcie-root-port,id={port},chassis={chassis}",
            "-device", f"{device},bus={port},x-pcie-pm-no-soft-reset=on"]


def _output(out, pcie):
    return ["-fsdev", f"local,id=out,path={_comma(out)},security_model=none,"
            "multidevs=remap", *_share("out", pcie)]


def _console(out, shell):
    log = _comma(out / "console.log")
    if shell:
        return ["-chardev", f"stdio,id=con,mux=on,signal=off,logfile={log}",
                "-serial", "chardev:con", "-mon", "chardev=con"]
    return ["-chardev", f"file,id=con,path={log}", "-serial", "chardev:con",
            "-monitor", "stdio"]


# ------------------------------------------------------------- the job

def _needed(job):
    """What a job may need; the guest binds what its own mounts hide."""
    wanted = {str(paths.ROOT), str(paths.BUILD)}
    if job and os.sep in str(job):
        job = Path(job).absolute()
        wanted |= {str(job.parent), str(job)}
    return sorted(wanted)


def _write_job(out, job, args, env, shell):
    for name in ("status", ".status.new", "job.log", ".shell"):
        (out / name).unlink(missing_ok=True)
    (out / ".keep").write_text("".join(f"{d}\n" for d in _needed(job)))
    env = {"OUT": "/run/out", "TRACE": f"/run/out/{TRACE}",
           "ROOT": str(paths.ROOT), "BUILD": str(paths.BUILD), **(env or {})}
    exports = "".join(f"export {name}={shlex.quote(str(value))}\n"
                      for name, value in env.items())
    (out / ".env").write_text(exports)
    if shell:
        size = shutil.get_terminal_size()
        (out / ".shell").touch()
        with open(out / ".env", "a") as file:
            file.write(f"COLUMNS={size.columns} LINES={size.lines}\n")
        return
    if os.sep in str(job):
        job = Path(job).absolute()
        if not os.access(job, os.X_OK):
            die(f"{job} is not an executable file",
                "name a script or program for the guest to run")
    words = shlex.join([str(job), *map(str, args)])
    (out / ".job").write_text(f"{exports}cd /tmp\nexec {words}\n")


# ------------------------------------------------------------- accelerator

def _kvm_works(kernel):
    """Whether a guest really comes up under KVM; asked once a machine's boot.

    /dev/kvm alone says little: inside a virtual machine it often exists and
    then the guest hangs or dies.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    known = paths.BUILD / "kvm"
    this = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if known.exists() and known.read_text().split()[:1] == [this]:
        return known.read_text().split()[1] == "yes"
    limit = 20
    note(f"does KVM work here? ({limit + LAST_WORDS}s at most)")
    result = run(kernel=kernel, job="true", accel="kvm", timeout=limit)
    if result.ok or "kvm" in result.stderr.lower() or result.console.stat().st_size:
        known.write_text(f"{this} {'yes' if result.ok else 'no'}\n")
    note("KVM works" if result.ok else "KVM does not: emulating (TCG)")
    shutil.rmtree(result.out, ignore_errors=True)
    return result.ok


def _accelerator(accel, plugin, kernel):
    if accel not in ACCELERATORS:
        die(f"accelerator '{accel}' is not known",
            f"use {', '.join(ACCELERATORS)}")
    if plugin:
        return "tcg"		# a plugin sees translated code only
    if accel == "auto":
        return "kvm" if _kvm_works(kernel) else "tcg"
    return accel


# ------------------------------------------------------------- running

def _keep_on(host_cpus):
    """Words before QEMU's that let it run on some CPUs of the host only."""
    if not host_cpus:
        return []
    allowed = sorted(os.sched_getaffinity(0))
    if host_cpus > len(allowed):
        die(f"QEMU cannot have {host_cpus} CPUs of the host",
            f"name {len(allowed)} at most")
    return ["taskset", "--cpu-list", ",".join(map(str, allowed[:host_cpus]))]


class _Watch:
    """Ends a QEMU that says nothing, takes too long, or has got stuck."""

    def __init__(self, out, timeout, silent, on_output, start=None):
        self.files = [out / "console.log", out / "job.log"]
        self.timeout, self.silent, self.start = timeout, silent, start
        self.on_output, self.shown = on_output, 0
        self.begun = self.heard = time.monotonic()
        self.sizes = None
        self.stuck_since = None

    def show(self):
        if not self.on_output or not self.files[1].exists():
            return
        with open(self.files[1], "rb") as log:
            log.seek(self.shown)
            text = log.read()
        self.shown += len(text)
        if text:
            self.on_output(text.decode(errors="replace"))

    def look(self):
        """None while all is well, else why QEMU has to be ended."""
        self.show()
        now = time.monotonic()
        sizes = [f.stat().st_size if f.exists() else 0 for f in self.files]
        if sizes != self.sizes:
            self.sizes, self.heard = sizes, now
            if self.stuck_since is None and sizes[0] and \
                    kernel_log.stuck(self.files[0].read_text(errors="replace")):
                self.stuck_since = now
        if self.stuck_since and now - self.stuck_since > GRACE:
            return "the guest is stuck"
        if self.timeout and now - self.begun > self.timeout:
            return f"no end after {span(self.timeout)}"
        if self.start and not self.files[1].exists() and \
                now - self.begun > self.start:
            return f"{NOT_STARTED} within {span(self.start)}"
        if self.silent and now - self.heard > self.silent:
            return f"the guest was silent for {span(self.silent)}"
        return None


def _wait(process, watch):
    """Until QEMU ends; returns why it had to be ended, or None."""
    pause = 0.05
    while process.poll() is None:
        why = watch.look()
        if why:
            return why
        time.sleep(pause)
        pause = min(pause * 1.2, 0.5)
    return None


def _last_words(process):
    """A kernel that hangs prints its timers and blocked tasks at an NMI."""
    try:
        process.stdin.write(b"nmi\n")
        process.wait(LAST_WORDS)
    except (OSError, subprocess.TimeoutExpired):
        pass			# it cannot; what it said before counts


def _status(out):
    try:
        return int((out / "status").read_text())
    except (OSError, ValueError):
        return None


def _judge(result, ended, process, races):
    """Fill in the result's status and trouble."""
    result.stderr = (result.out / "qemu.stderr").read_text(errors="replace")
    result.status = _status(result.out)
    last = (tail(result.console) or ["nothing"])[-1]
    result.report = result.trouble = kernel_log.report(result.console, races=races)
    if ended:
        result.trouble = (f"{ended}; {result.trouble}" if result.trouble else
                          f"{ended}; last line of {result.console}: {last}")
    elif not result.trouble and result.status is None:
        said = tail(result.out / "qemu.stderr") if process.returncode else []
        result.trouble = ("guest ended without a result; " +
                          (f"QEMU: {said[-1]}" if said else
                           f"last line of {result.console}: {last}"))


def emulator_failed(result):
    """Whether QEMU ended by an assertion of its own: not the guest's failure."""
    return result.status is None and "Assertion" in result.stderr


def _lost(result):
    """An emulated machine may lose its way in the firmware or the boot, or the
    timer of a CPU that it starts, and the emulator may fail: then its job has no
    result yet."""
    if result.status is not None:
        return False
    if result.log.exists() and RESULT.search(result.log.read_text(errors="replace")):
        return False
    if not result.report:
        return NOT_STARTED in (result.trouble or "") or emulator_failed(result)
    return bool(STUCK.search(result.report.splitlines()[0])) and \
        LOST_TIMER in result.console.read_text(errors="replace")


def run(kernel="patched", config="small", job=None, args=(), cpus=2, mem=2048,
        accel="auto", append="", plugin=None, devices=(), timeout=600,
        silent=None, out=None, shell=False, cpu_model="max", env=None,
        on_output=None, trace=None, pcie=False, more=(), races=True,
        host_cpus=None):
    """Boot, run the job, wait for the end.  Never raises for a bad guest:
    look at the result's status and trouble.

    plugin: "file.so,arg=value"; silent: seconds without a line on the console
    or from the job (default: none set); env: more variables for the job;
    on_output: called with what the job prints, as it prints it; trace: events
    of QEMU, which the job finds in the file $TRACE as they happen; pcie: a machine
    that can suspend; more: words for QEMU; races: a data race is trouble;
    host_cpus: on so many CPUs of the host, all of the guest's (default: on any).
    """
    kernel = image(kernel, config)
    accel = _accelerator(accel, plugin, kernel)
    out = Path(out).absolute() if out else fresh_out()
    out.mkdir(parents=True, exist_ok=True)
    _write_job(out, job, args, env, shell)
    prefix, environment = qemu.command()
    argv = [*_keep_on(host_cpus), *prefix,
            *_machine(kernel, cpus, mem, accel, cpu_model, append, pcie),
            *_output(out, pcie), *_console(out, shell), *more]
    if plugin:
        argv += ["-plugin", str(plugin)]
    if trace:
        argv += ["-trace", f"{trace},file={_comma(out / TRACE)}"]
    disks = []
    try:
        for number, spec in enumerate(devices):
            words, files = _disk(spec, number, out)
            argv += words
            disks += files
        (out / "qemu.command").write_text(shlex.join(argv) + "\n")
        result = _run(argv, environment, out, shell, timeout, silent, on_output,
                      races)
        if _lost(result):
            first = result.console.replace(out / "console.first.log")
            note(f"{result.trouble.splitlines()[0]}; once more (what it said is "
                 f"in {first})")
            result.log.unlink(missing_ok=True)
            result = _run(argv, environment, out, shell, timeout, silent,
                          on_output, races)
        return result
    finally:
        for path in disks:
            path.unlink(missing_ok=True)


def _run(argv, environment, out, shell, timeout, silent, on_output, races):
    result = Result(out=out, argv=argv)
    (out / "console.log").write_bytes(b"")
    watch = _Watch(out, timeout, silent, on_output, None if shell else START)
    # If we are killed, QEMU must not stay behind.
    if shutil.which("setpriv"):
        argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    with open(out / "qemu.stderr", "wb") as err:
        process = subprocess.Popen(
            argv, env={**os.environ, **(environment or {})},
            bufsize=0, stdin=None if shell else subprocess.PIPE,
            stdout=None if shell else subprocess.DEVNULL, stderr=err,
            start_new_session=not shell)
    try:
        ended = _wait(process, watch)
        watch.show()
        result.seconds = time.monotonic() - watch.begun
        _judge(result, ended, process, races)
        if ended and not shell:
            _last_words(process)
    finally:
        # SIGKILL: a QEMU whose plugin holds its main thread hears no other.
        if process.poll() is None:
            if shell:
                process.send_signal(signal.SIGKILL)
                process.wait()
            else:
                kill_group(process, patience=0)
        if process.stdin:
            process.stdin.close()
    if shell and result.status is None and not process.returncode:
        result.trouble = None	# left with Ctrl-A x
    return result
