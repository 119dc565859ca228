# SPDX-License-Identifier: GPL-2.0
"""fio: run a job file as it is on a device, read its JSON."""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from .. import paths
from ..ui import die
from . import blockdev, lockstat

JOBS = paths.ROOT / "tools/bench/jobs"
# Much longer than any run: a guest whose idle time is skipped sees its own
# clock fly while it waits for the host to read a file.
LATE = 1200


def warm():
    """Bring fio into the page cache, so that no measured run waits for it."""
    try:
        subprocess.run(["fio", "--name=warm", "--ioengine=null", "--size=4k",
                        "--thread", "--output-format=json"], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        die("fio is not installed", "run tools/setup")


def wrapper(job, options):
    """The text of a job file, unchanged, with options set before it."""
    lines = [f"{name}={value}" for name, value in options.items()]
    return "\n".join(["[global]", *lines, "", job])


def entries(text):
    """What fio reports: of each job, or of each group of jobs."""
    try:
        return json.loads(text[text.index("{"):])["jobs"]
    except (ValueError, KeyError) as error:
        raise ValueError("fio wrote no JSON result") from error


def parse(jobs):
    """IOPS by direction, and usr and sys % as fio prints them (per job)."""
    if not jobs or any(job["error"] for job in jobs):
        raise ValueError("fio reports an I/O error")
    read, write = (sum(job[way]["iops"] for job in jobs)
                   for way in ("read", "write"))
    share = 1 / len(jobs)
    return {"iops": round(read + write, 1),
            "read_iops": round(read, 1), "write_iops": round(write, 1),
            "usr": round(share * sum(job["usr_cpu"] for job in jobs), 2),
            "sys": round(share * sum(job["sys_cpu"] for job in jobs), 2)}


def latency(group):
    """Of all I/Os, in microseconds, from submission to completion."""
    parts = [group[way] for way in ("read", "write")
             if group[way]["total_ios"]]
    if len(parts) != 1:
        raise ValueError("fio reports not one direction")
    lat, clat = parts[0]["lat_ns"], parts[0]["clat_ns"]
    found = {f"lat_{name}": lat[name]
             for name in ("min", "mean", "max", "stddev")}
    found["lat_p99"] = clat["percentile"]["99.000000"]
    return {name: round(ns / 1000, 1) for name, ns in found.items()}


def run(job, device, seconds, **options):
    """Run tools/bench/jobs/JOB.fio; returns parse() of it.  The number of a
    job takes the place of $jobnum in DEVICE."""
    return _run(job, device, seconds, [options], parse)


def run_each(job, device, seconds, cells):
    """Run JOB with the options of each of CELLS, one after the other in one
    fio, which takes longer to start than a cell does; returns parse() and
    latency() of each.  JOB has group_reporting."""
    def read(groups):
        if len(groups) != len(cells):
            raise ValueError(f"{len(groups)} results of {len(cells)} runs")
        return [parse([group]) | latency(group) for group in groups]
    return _run(job, device, seconds,
                [{"stonewall": 1, **options} for options in cells], read)


def _run(job, device, seconds, runs, read):
    text = (JOBS / f"{job}.fio").read_text()
    name = "filename_format" if "$" in device else "filename"
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result")
        files = [Path(folder, f"job{number}.fio")
                 for number in range(len(runs))]
        for file, options in zip(files, runs):
            file.write_text(wrapper(text, {name: device, "runtime": seconds,
                                           **options}))
        cmd = ["fio", "--output-format=json", f"--output={result}", *files]
        try:
            done = subprocess.run(cmd, stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, check=False,
                                  cwd=folder,
                                  timeout=20 * seconds * len(runs) + LATE)
        except FileNotFoundError:
            die("fio is not installed", "run tools/setup")
        except subprocess.TimeoutExpired:
            die(f"fio job {job} on {device} did not end",
                "an I/O hangs: see the kernel's log")
        try:
            if done.returncode:
                raise ValueError(f"fio ended with {done.returncode}")
            return read(entries(result.read_text()))
        except (OSError, ValueError, KeyError) as error:
            words = (done.stderr or done.stdout).strip().splitlines()
            die(f"fio job {job} on {device}: {error} "
                f"{words[-1] if words else ''}")


def with_locks(job, device, sched, seconds):
    """Run JOB with a scheduler: run(), and the lock share if the kernel counts it."""
    blockdev.set_scheduler(device, sched)
    counted = lockstat.available()
    if counted:
        lockstat.reset()
    begun = time.monotonic()
    values = run(job, device, seconds)
    if counted:
        values.update(lockstat.share(lockstat.FILE.read_text(), os.cpu_count(),
                                     time.monotonic() - begun))
    return values
