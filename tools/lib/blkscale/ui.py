# SPDX-License-Identifier: GPL-2.0
"""What a user sees: one-line errors, notes, and the steps of long work."""
import argparse
import os
import signal
import sys
import time


def die(what, how="", code=1):
    """End the program: one line that says what is wrong and how to mend it."""
    line = " ".join(str(what).split())
    if how:
        line += "; " + " ".join(str(how).split())
    sys.stdout.flush()
    print(f"error: {line}", file=sys.stderr, flush=True)
    raise SystemExit(code)


class Parser(argparse.ArgumentParser):
    """Options; a mistake in a call is one line, too."""

    def __init__(self, **kwargs):
        super().__init__(
            formatter_class=argparse.RawTextHelpFormatter, **kwargs)

    def error(self, message):
        die(f"{self.prog}: {message}", f"see {self.prog} --help")


def numbers(option, text, most=None):
    """The value of an option such as --cpus 1,4 as a list; ends the program if
    it is none."""
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1 or most and max(found) > most:
        die(f"{option} {text}: not a list of numbers from 1 "
            f"{f'to {most}' if most else 'on'}",
            f"say, for instance, {option} 1,4,8,16")
    return found


def note(message):
    print(message, file=sys.stderr, flush=True)


def span(seconds):
    """Seconds as a person reads them: 8s, 4m10s, 1h05m."""
    seconds = int(seconds + 0.5)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"


def _terminated(number, _frame):
    raise SystemExit(128 + number)


def _open_standard_files():
    """A closed stdin must not become the number of a file we open."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)


def main(function):
    """Run a program's main function; an interrupt ends it without a traceback.
    SIGTERM unwinds as an exit does, so that what we started is ended too."""
    _open_standard_files()
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(function())
    except KeyboardInterrupt:
        die("interrupted", code=130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


class Steps:
    """Progress of long work.

    steps = Steps([("build base kernel", 480), ("measure", 300)])
    with steps.step("build base kernel"): ...

    A step that is not entered (nothing to do) is passed over by the next
    one.  The time left is what the remaining steps are expected to take.
    A program that another one's step runs (with environment()) counts as part
    of that step: its lines and times are those of the whole.
    """

    def __init__(self, plan, out=None, clock=time.monotonic, outer=None):
        self.plan = list(plan.items() if hasattr(plan, "items") else plan)
        self.out = out or sys.stderr
        self.clock = clock
        within, begun, later = _outer(os.environ if outer is None else outer)
        self.within = within
        self.begun = clock() if begun is None else begun
        self.later = later
        self.entered = clock()
        self.at = -1
        self.took = {}

    def say(self, text):
        print(text, file=self.out, flush=True)

    def _seek(self, name):
        if name is None:
            return self.at + 1
        for i in range(self.at + 1, len(self.plan)):
            if self.plan[i][0] == name:
                return i
        raise ValueError(f"no step '{name}' is left")

    def _alone(self):
        """Whether we are all of another program's step, which it has named."""
        return self.within and len(self.plan) == 1

    def _place(self):
        if self._alone():
            return self.within.strip()
        return f"{self.within}{self.at + 1}/{len(self.plan)}"

    def _after(self):
        """Seconds that the steps after the present one will take."""
        return self.later + sum(s for _, s in self.plan[self.at + 1:])

    def _times(self, here):
        return (f"(spent {span(self.clock() - self.begun)}, "
                f"about {span(here + self._after())} left)")

    def step(self, name=None):
        self.at = self._seek(name)
        title, seconds = self.plan[self.at]
        if not self._alone():
            self.say(f"[{self._place()}] {title} {self._times(seconds)}")
        return _Step(self, title)

    def tell(self, done, of, what=""):
        """Progress inside the present step."""
        here = self.clock() - self.entered
        rate = here / done if done else self.plan[self.at][1] / max(of, 1)
        self.say(f"[{self._place()}]   {done} of {of} {what} "
                 f"{self._times(rate * (of - done))}")

    def environment(self):
        """For a program that does part of the present step."""
        return {**os.environ, _WITHIN: f"{self._place()} "
                f"{self.begun:.1f} {self._after():.0f}"}

    def finish(self, what="done"):
        if not self.within:
            self.say(f"{what} in {span(self.clock() - self.begun)}")


_WITHIN = "BLKSCALE_WITHIN"


def _outer(environ):
    """Place, begin and later seconds of the step that this is a part of."""
    words = environ.get(_WITHIN, "").rsplit(" ", 2)
    if len(words) != 3:
        return "", None, 0
    return f"{words[0]} ", float(words[1]), float(words[2])


class _Step:
    def __init__(self, steps, title):
        self.steps, self.title = steps, title

    def __enter__(self):
        self.steps.entered = self.steps.clock()
        return self.steps

    def __exit__(self, *exc):
        self.steps.took[self.title] = self.steps.clock() - self.steps.entered
        return False
