# SPDX-License-Identifier: GPL-2.0
"""Running other programs."""
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from .ui import die, span


def tail(path, lines=1):
    """The last lines of a log that are not empty."""
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-lines:]


def missing(needed):
    """The packages of which the program or file that they bring is not there, of
    {package: program or /file}."""
    # Not in every user's PATH, and needed all the same.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [package for package, brings in needed.items()
            if not (Path(brings).exists() if brings.startswith("/")
                    else shutil.which(brings, path=path))]


def kill_group(process, patience=5):
    """End a process that was started with its own session, and its children.

    SIGTERM first, so that our own programs end what they started in sessions
    of their own; patience=0 for what does not hear it.
    """
    for number in [signal.SIGTERM] * bool(patience) + [signal.SIGKILL]:
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            pass
    process.wait()


def run(cmd, log=None, what=None, how="", timeout=None, cwd=None, env=None,
        check=True):
    """Run cmd; end the program in one line if it fails.

    log: a file for its output (else the user sees it); what: the failed work
    in the user's words; how: how to mend it.  Returns the exit status.
    """
    cmd = [str(word) for word in cmd]
    what = what or f"`{shlex.join(cmd)}` failed"
    if not shutil.which(cmd[0]):
        die(f"{what}: {cmd[0]} is not installed", how or "run tools/setup")
    if log:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
    out = open(log, "wb") if log else None
    process = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT if log else None,
                               cwd=cwd, env=env, start_new_session=True)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        kill_group(process)
        die(f"{what}: no end after {span(timeout)}", _see(log, how))
    except BaseException:
        kill_group(process)
        raise
    finally:
        if out:
            out.close()
    if status and check:
        words = " / ".join(tail(log, 3)) if log else ""
        die(f"{what} (exit {status})" + (f": {words}" if words else ""),
            _see(log, how))
    return status


def _see(log, how):
    return "; ".join(filter(None, [f"see {log}" if log else "", how]))


def output(cmd, what=None, how="", cwd=None, env=None):
    """The standard output of cmd as text; ends the program if it fails."""
    cmd = [str(word) for word in cmd]
    what = what or f"`{shlex.join(cmd)}` failed"
    try:
        done = subprocess.run(cmd, stdin=subprocess.DEVNULL, cwd=cwd, env=env,
                              capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        die(f"{what}: {cmd[0]} is not installed", how or "run tools/setup")
    if done.returncode:
        words = done.stderr.strip().splitlines()
        die(f"{what} (exit {done.returncode})"
            + (f": {words[-1]}" if words else ""), how)
    return done.stdout
