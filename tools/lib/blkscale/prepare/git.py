# SPDX-License-Identifier: GPL-2.0
"""git, run so that nothing in the user's own configuration changes its output."""
import os
import subprocess

from .. import proc
from ..ui import die

AUTHOR = ("Block Scaling", "linux-block@vger.kernel.org")
SETTINGS = {"safe.directory": "*", "gc.auto": "0", "advice.detachedHead": "false",
            "core.hooksPath": "/dev/null", "am.threeWay": "false",
            "commit.gpgSign": "false", "core.autocrlf": "false"}


def env():
    """An environment without the user's identity, options and GIT_DIR."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    found.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1",
                 GIT_TERMINAL_PROMPT="0", LC_ALL="C.UTF-8",
                 GIT_COMMITTER_NAME=AUTHOR[0], GIT_COMMITTER_EMAIL=AUTHOR[1],
                 GIT_CONFIG_COUNT=str(len(SETTINGS)))
    for i, (key, value) in enumerate(SETTINGS.items()):
        found[f"GIT_CONFIG_KEY_{i}"] = key
        found[f"GIT_CONFIG_VALUE_{i}"] = value
    return found


def git(tree, *args, what=None, how=""):
    """Output of a git command in tree; ends the program if it fails."""
    what = what or f"git {args[0]} failed in {tree}"
    return proc.output(["git", "-C", tree, *args], what=what, how=how, env=env())


def raw(tree, *args):
    """Output as bytes, for contents that need not be text."""
    done = subprocess.run(["git", "-C", str(tree), *args], env=env(),
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        die(f"git {args[0]} failed in {tree}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def ask(tree, *args):
    """(worked, output) of a git command that may fail."""
    done = subprocess.run(["git", "-C", str(tree), *map(str, args)], env=env(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout.strip()


def rev(tree, name):
    """The commit that name means, or None."""
    worked, text = ask(tree, "rev-parse", "--verify", "--quiet", name + "^{commit}")
    return text if worked else None


def is_repo(tree):
    """Whether tree itself is the top of a git work tree."""
    worked, top = ask(tree, "rev-parse", "--show-toplevel")
    return worked and os.path.realpath(top) == os.path.realpath(tree)
