# SPDX-License-Identifier: GPL-2.0
"""The patch files of the series: reading them, naming them, applying them."""
import email
import email.header
import contextlib
import re
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path

from .. import paths
from ..ui import die
from . import git

FORM = ["--zero-commit", "--no-signature", "--full-index", "--no-thread", "--no-notes",
        "--no-attach", "--subject-prefix=PATCH", "--src-prefix=a/", "--dst-prefix=b/",
        "--diff-algorithm=myers"]
FORMAT = ["format-patch", "--stdout", "-N", "--no-base", *FORM]
MAILS = ["format-patch", "-q", "-n", "--cover-letter", "--base=base", *FORM]
# The letter over all parts.
OVERVIEW = "overview"
OF = """# SPDX-License-Identifier: GPL-2.0
# Which version of the series' patch each override was made from: its name and
# its git patch-id. `make refresh` writes this.
"""
# How many folders deep patches are kept; elsewhere two.
DEPTH = {"block": 1, "tools": 4}


def read(path):
    return Path(path).read_bytes().decode("utf-8", "surrogateescape")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


def subject(text):
    """The subject of a patch, unfolded and without [PATCH]."""
    head = email.message_from_string(text.partition("\n\n")[0])
    words = str(email.header.make_header(
        email.header.decode_header(head.get("Subject", ""))))
    return re.sub(r"^\[PATCH[^]]*\]\s*", "", " ".join(words.split()))


def message(text):
    """The body of the commit message, without subject and diffstat."""
    body = text.partition("\n\n")[2]
    return re.split(r"(?m)^---$|^diff --git ", body, maxsplit=1)[0].strip()


def diff(text):
    at = re.search(r"(?m)^diff --git ", text)
    return text[at.start():] if at else ""


def files(text):
    """{path: (lines changed, whole file added)} of a patch."""
    found = {}
    for part in re.split(r"(?m)^diff --git ", diff(text))[1:]:
        first, _, rest = part.partition("\n")
        path = first.rpartition(" b/")[2]
        head, at, hunks = rest.partition("\n@@ ")
        changed = len(re.findall(r"(?m)^[+-]", at + hunks))
        found[path] = (changed, bool(re.search(r"(?m)^new file mode", head)))
    return found


def folder_of(path):
    parts = Path(path).parent.parts
    return "/".join(parts[:DEPTH.get(parts[0] if parts else "", 2)])


def home(text):
    """The folder of the kernel that a patch chiefly changes."""
    weight = {}
    for path, (changed, _) in files(text).items():
        folder = folder_of(path)
        weight[folder] = weight.get(folder, 0) + changed
    return max(sorted(weight), key=weight.get) if weight else ""


def new_name(text, taken=()):
    """A name for a patch that has no file yet: its folder and its subject."""
    folder = home(text)
    prefix = Path(folder).name + "-"
    slug = re.sub(r"[^a-z0-9]+", "-", subject(text).lower()).strip("-")
    if slug.startswith(prefix) and len(slug) > len(prefix):
        slug = slug[len(prefix):]
    slug = textwrap.shorten(slug.replace("-", " "), 52, placeholder="")
    slug = slug.replace(" ", "-") or "patch"
    base = f"{folder}/{slug}" if folder else slug
    name, n = f"{base}.patch", 1
    while name in taken:
        n += 1
        name = f"{base}-{n}.patch"
    return name


def names_for(texts, old):
    """Names for patches (in order), given the old [(name, text)].

    A commit keeps the file whose subject it has; one that was only reworded
    keeps the file whose diff it has; the others get new names.
    """
    subjects = [subject(text) for text in texts]
    for one in subjects:
        if subjects.count(one) > 1:
            die(f"two commits have the subject '{one}'", "give each its own subject")
    names = [None] * len(texts)
    left = dict(old)
    for same in (subject, diff):
        index = {same(text): name for name, text in left.items()}
        for i, text in enumerate(texts):
            if names[i] is None and index.get(same(text)) in left:
                names[i] = index[same(text)]
                del left[names[i]]
    taken = set(filter(None, names)) | set(left)
    for i, text in enumerate(texts):
        if names[i] is None:
            names[i] = new_name(text, taken)
            taken.add(names[i])
    return names


def parse(lines, find=paths.find):
    """The names in a series file; ends the program if one cannot be right."""
    names = paths.patch_lines(lines)
    for name in names:
        if not name.endswith(".patch") or " " in name or name.startswith(("/", "../")):
            die(f"series: '{name}' is no patch file of this repository",
                "one path a line, ending in .patch, or a comment")
        if names.count(name) > 1:
            die(f"series: '{name}' is named twice", "take one of the lines out")
        if not find(name).is_file():
            die(f"series names {name}, but there is no such file",
                "restore it from git, or take the line out")
    return names


def listing(names, old):
    """The lines of a series file for names, with the comments of the old
    lines: each stays above the patch that it stood above, or if that is gone
    above the next one that is left."""
    above, waiting = {}, []
    for line in map(str.strip, old):
        if line.startswith("#"):
            waiting.append(line)
        elif line in names:
            above[line], waiting = waiting, []
    return [line for name in names
            for line in [*above.get(name, []), name]] + waiting


def parts(lines):
    """[(name, [patch, ...])] of a series file: `# part: NAME` begins one."""
    found = []
    for line in map(str.strip, lines):
        if line.startswith("# part:"):
            found.append((line.partition(":")[2].strip(), []))
        elif paths.patch_lines([line]):
            if not found:
                die(f"series: {line} is in no part",
                    "put a line `# part: NAME` above it")
            found[-1][1].append(line)
    return found


def alone(lines):
    """The parts that stand on base and on no other part: those that have a line
    `# alone` below their name."""
    found, part = set(), None
    for line in map(str.strip, lines):
        if line.startswith("# part:"):
            part = line.partition(":")[2].strip()
        elif line.startswith("# alone"):
            found.add(part)
    return found


def version(lines):
    """What the series calls itself (`# version: v1`), or nothing."""
    named = (re.match(r"# version: (v\d+)$", line.strip()) for line in lines)
    return next((match[1] for match in named if match), "")


def series_of(lines):
    """{part: (the series that it is sent with, whether that is an RFC)}: a line
    `# series: NAME` or `# series: NAME, RFC` begins one."""
    found, name = {}, ("", False)
    for line in map(str.strip, lines):
        word, _, told = line.partition(":")
        if word == "# series":
            title, _, rest = told.strip().partition(",")
            name = title, rest.strip() == "RFC"
        elif word == "# part":
            found[told.strip()] = name
    return found


def prefix(lines, rfc):
    """What stands in the brackets of a mail's subject: RFC PATCH v1."""
    return " ".join(filter(None, ["RFC" if rfc else "", "PATCH", version(lines)]))


def ends(lines, commits):
    """[(part, its last commit)], given the commits of all patches."""
    at = 0
    return [(part, commits[(at := at + len(names)) - 1]) for part, names in parts(lines)]


def file_name(part):
    """What files and folders of a part are called."""
    return part.replace(" ", "-")


def letter(part, find=paths.find):
    """(subject, text) of the cover letter of a part."""
    path = find(f"letters/{file_name(part)}")
    head, _, text = (read(path) if path.is_file() else "").partition("\n\n")
    if not head.startswith("Subject: ") or not text.strip():
        die(f"{path} is no cover letter of '{part}'",
            "its first line is `Subject: ...`, then an empty one and the text")
    return " ".join(head.split()[1:]), text.strip()


def load(home=None, find=None):
    """[(name, text)] of the patch files, in order."""
    listing, find = Path(home or paths.HOME) / "series", find or paths.find
    names = parse(listing.read_text().splitlines(), find) if listing.exists() else []
    return [(name, read(find(name))) for name in names]


def load_main():
    """[(name, text)] of the series itself, whatever the base."""
    return load(paths.ROOT, lambda name: paths.ROOT / name)


def left_out(lines):
    """{name: why} of the patches that a back-port does without: `# without: NAME why`."""
    found = {}
    for line in map(str.strip, lines):
        if line.startswith("# without:"):
            name, _, why = line.partition(":")[2].strip().partition(" ")
            found[name] = why.strip()
    return found


def patch_id(text):
    """What git calls a patch's id: it stays when only lines move, or the message changes."""
    done = subprocess.run(["git", "patch-id", "--stable"], capture_output=True, env=git.env(),
                          input=text.encode("utf-8", "surrogateescape"), check=True)
    return done.stdout.decode().partition(" ")[0]


def of(home=None):
    """{name: id of the patch that it was made from} of the overrides of a back-port."""
    path = Path(home or paths.HOME) / "of"
    return dict(line.split() for line in paths.patch_lines(
        path.read_text().splitlines())) if path.exists() else {}


def write_of(made):
    write(paths.HOME / "of", OF + "".join(f"{name} {number}\n"
                                          for name, number in made.items()))


def backport_faults(home):
    """What is wrong with a back-port, as lines; home is its folder."""
    home = Path(home)
    lines = (home / "series").read_text().splitlines()
    main, made, without = dict(load_main()), of(home), left_out(lines)
    names = paths.patch_lines(lines)
    own = {str(path.relative_to(home)) for path in home.rglob("*.patch")
           if path.parent != home / "tools/tests/breaks"}
    wrong = []
    for name, text in main.items():
        if (name in names) == (name in without):
            wrong.append(f"{name} is neither in the list nor left out by `# without: {name} "
                         "why`" if name not in names else f"{name} is in the list and left out")
    wrong += [f"{name} is left out and nobody says why" for name, why in without.items() if not why]
    wrong += [f"{name} is no patch of the series" for name in without if name not in main]
    wrong += [f"{name} is there, but not in the list" for name in sorted(own - set(names))]
    order = [name for name in names if name in main]
    if order != [name for name in main if name in order]:
        wrong.append("the patches that it shares are in another order than in `series`")
    for name in sorted(own & set(main)):
        now = patch_id(main[name])
        if name not in made:
            wrong.append(f"`of` does not say which {name} the override was made from")
        elif made[name] != now:
            wrong.append(f"{name} has changed, and the override in {home.name} is of an older "
                         f"one: make the change there, too, or if it needs none, put {now} into "
                         f"backports/{home.name}/of")
        if subject(read(home / name)) != subject(main[name]):
            wrong.append(f"the override of {name} has another subject")
    wrong += [f"`of` names {name}, which is no override" for name in made
              if name not in own & set(main)]
    return wrong


def commits(tree, tip="series", base="base"):
    """The commits between base and tip, oldest first."""
    if not git.ask(tree, "merge-base", "--is-ancestor", base, tip)[0]:
        die(f"{tip} in {tree} is not built on {base}", f"git rebase it onto {base}")
    if git.git(tree, "rev-list", "--merges", f"{base}..{tip}").strip():
        die(f"{tip} in {tree} holds a merge commit", "make the series linear: git rebase")
    return git.git(tree, "rev-list", "--reverse", f"{base}..{tip}").split()


def texts(tree, tip="series", base="base"):
    """The patch texts of the commits between base and tip."""
    return [git.raw(tree, *FORMAT, "-1", one).decode("utf-8", "surrogateescape")
            for one in commits(tree, tip, base)]


def named_before(old):
    """The patches whose names the commits of their subjects get: a back-port's, and those
    of the series that it has not yet."""
    mine = {name for name, _ in old}
    return old + [(name, text) for name, text in load_main() if name not in mine]


def given(tree, commits_of, patches):
    """{name: whether the patch gives the commit} of {name: commit}."""
    pairs = [(commit, patches[name]) for name, commit in commits_of.items()]
    return dict(zip(commits_of, give(tree, pairs))) if pairs else {}


def compare(tree, old):
    """[(name, text, whether the patch file says the same)] of the commits of a tree. A patch
    that a back-port shares has other offsets there: what it gives is compared."""
    before, new = dict(old), texts(tree)
    names = names_for(new, named_before(old))
    shared = given(tree, {name: commit for name, commit in zip(names, commits(tree))
                          if name in before and not (paths.HOME / name).is_file()}, before)
    return [(name, text, shared[name] if name in shared else before.get(name) == text)
            for name, text in zip(names, new)]


def need_same(tree):
    """The tree holds what the patch files say, or the program ends."""
    old = load()
    found = compare(tree, old)
    if [name for name, _, same in found if same] != [name for name, _ in old] \
            or len(found) != len(old):
        die(f"{tree} is not what the patch files say",
            f"run `{paths.make('tree')}` or `{paths.make('refresh')}`")


def mails(tree, start, end, folder, part, base_line, brackets):
    """Write the mails of the commits between start and end, under the part's
    letter, into a folder; git's shortlog, diffstat and prerequisites stay."""
    title, text = letter(part)
    git.git(tree, *MAILS, f"--subject-prefix={brackets}", "-o", folder, f"{start}..{end}")
    cover = folder / "0000-cover-letter.patch"
    write(cover, read(cover).replace("*** SUBJECT HERE ***", title)
          .replace("*** BLURB HERE ***", text)
          .replace(f"base-commit: {git.rev(tree, 'base')}", base_line))


def overview(path, base_line, brackets):
    """Write the letter over all as a mail."""
    title, text = letter(OVERVIEW)
    write(path, f"Subject: [{brackets}] {title}\n\n{text}\n\n{base_line}\n")


def whole_files(patches):
    """Paths that the patches add whole."""
    return {path for text in patches for path, (_, added) in files(text).items() if added}


@contextlib.contextmanager
def borrowed(repo, patches):
    """A clone that borrows repo's objects and checks out only the files concerned, so
    repo's branches, index and files stay as they are whatever happens, and it takes
    seconds."""
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="am-", dir=paths.BUILD))
    try:
        clone = place / "clone"
        git.git(paths.BUILD, "clone", "-q", "--shared", "--no-checkout",
                Path(repo).absolute(), clone, what=f"cannot read {repo} as a git tree")
        touched = sorted({path for _, text in patches for path in files(text)})
        (clone / ".git/info").mkdir(exist_ok=True)
        (clone / ".git/info/sparse-checkout").write_text(
            "".join(f"/{path}\n" for path in touched) or "/Makefile\n")
        git.git(clone, "config", "core.sparseCheckout", "true")
        yield clone
    finally:
        shutil.rmtree(place, ignore_errors=True)


def am(clone, text, three_way=False):
    """(worked, output) of git am for one patch, on HEAD of a clone."""
    mail = clone.parent / "mail"
    write(mail, text)
    # A fixed committer and the author's date: the same files give the same commits.
    return git.ask(clone, "am", "--committer-date-is-author-date", "--keep-non-patch",
                   *(["-3"] if three_way else []), mail)


def apply(repo, start, patches, three_way=False):
    """Apply [(name, text)] onto commit start of repo; returns the new commit."""
    with borrowed(repo, patches) as clone:
        git.git(clone, "checkout", "-q", "--detach", start)
        for name, text in patches:
            worked, said = am(clone, text, three_way)
            if not worked:
                die(f"{name} does not apply to {repo}: {reason(said)}",
                    f"nothing there was changed; its base is {start[:12]}")
        git.git(repo, "fetch", "-q", "--no-tags", clone, "HEAD",
                what=f"cannot write to {repo}")
        return git.rev(clone, "HEAD")


def give(repo, pairs):
    """For each (commit, patch text): whether git am of the text on the commit's parent
    gives what the commit is, message and author included."""
    same = ("log", "-1", "--format=%T%n%an%n%ae%n%B")
    found = []
    with borrowed(repo, pairs) as clone:
        for commit, text in pairs:
            git.git(clone, "checkout", "-q", "-f", "--detach", f"{commit}~")
            worked, _ = am(clone, text)
            if not worked:
                git.ask(clone, "am", "--abort")
            found.append(worked and git.git(clone, *same) == git.git(clone, *same, commit))
    return found


def reason(said):
    """The lines of git am's output that say which file is in the way."""
    lines = [line for line in said.splitlines()
             if re.match(r"error: |CONFLICT|fatal: ", line)]
    lines = [line for line in lines if "Failed to merge" not in line]
    return "; ".join(lines[:3]) or (said.splitlines() or ["git am failed"])[-1]
