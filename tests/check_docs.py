#!/usr/bin/env python3
"""Checks that README.md, docs/ and lessons/ tell the truth.

Every relative link, image and anchor must exist. Every ```sh block is run from the root of the
repository in one bash with `set -e`. In a ```console block the lines after each `$ command` must
be exactly what it prints (stdout and stderr); a line `...` stands for any lines. A command there
must succeed, unless the next one is `$ echo $?`, which shows the status instead.

A block is not run only if the line above it says so where readers of the source see it:
    <!-- not run: needs a GPU -->
Such blocks are listed. Usage: check_docs.py [--links-only] [FILE.md ...]

check_docs.py --self-test checks a file full of mistakes, tests/data/broken_docs.md, and fails if
any of them is not found, or anything else is.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS_A_BLOCK = 900
MARK = "\x1e"  # ends each command's output; a control character that no program here prints
FENCE = re.compile(r"^( *)(```+|~~~+) *([\w+-]*) *$")
EXEMPTION = re.compile(r"^ *<!-- not run: (.+?) *-->$")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?: +\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]: +<?(\S+?)>?(?: .*)?$")
HTML_LINK = re.compile(r"<(?:img|a|source)\b[^>]*\b(?:src|href|srcset)=\"([^\"]+)\"")

failures = []


def fail(path, line, message):
    failures.append((path, line, message))
    print(f"{path.relative_to(ROOT)}:{line}: {message}", flush=True)


class Block:
    """A fenced block: language, first line of the fence, text lines, reason not to run it."""

    def __init__(self, language, line, reason):
        self.language, self.line, self.reason, self.text = language, line, reason, []


def parse(path):
    """The prose as (number, line) pairs, and the fenced blocks, of one file."""
    prose, blocks, block, indent, fence = [], [], None, 0, ""
    previous = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        match = FENCE.match(line)
        if block is None and match:
            indent, fence = len(match[1]), match[2]
            reason = EXEMPTION.match(previous)
            block = Block(match[3], number, reason[1] if reason else None)
        elif block is not None and match and match[2] == fence and not match[3]:
            blocks.append(block)
            block = None
        elif block is not None:
            block.text.append(line[min(indent, len(line) - len(line.lstrip())):])
        else:
            prose.append((number, line))
        previous = line
    if block is not None:
        fail(path, block.line, "this block has no end")
    return prose, blocks


def anchors(path):
    """The anchors that GitHub makes of a file's headings, and those written by hand."""
    found, seen = set(), {}
    for _, line in parse(path)[0]:
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"^ {0,3}#{1,6} +(.*?)(?: +#+)? *$", line)
        if heading:
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            found.add(f"{slug}-{count}" if count else slug)
    return found


def check_link(path, line, target):
    """1 if the link points out of the repository and so is not checked, else 0."""
    if re.match(r"^[a-z][a-z0-9+.-]*:", target):
        return 1
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if not file.exists():
        fail(path, line, f"link to {target}: there is no such file")
    elif anchor and file.suffix == ".md" and anchor not in anchors(file):
        fail(path, line, f"link to {target}: there is no such heading")
    return 0


def check_links(path, prose):
    outside = 0
    for number, line in prose:
        line = re.sub(r"`[^`]*`", "``", line)
        for pattern in (LINK, HTML_LINK, REFERENCE):
            for target in pattern.findall(line):
                outside += check_link(path, number, target)
    return outside


def environment():
    """Ours, less what a make above this one would pass on to the commands."""
    return {k: v for k, v in os.environ.items()
            if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "BUILD")}


def bash(script):
    """Runs the script; its output and exit status (124 if it took too long)."""
    if os.geteuid() == 0:
        script = 'sudo() { [ "$1" = -n ] && shift; command "$@"; }\n' + script
    run = subprocess.Popen(["bash", "-c", script], cwd=ROOT, env=environment(), text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, errors="replace", start_new_session=True)
    try:
        output, _ = run.communicate(timeout=SECONDS_A_BLOCK)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        return run.communicate()[0] + f"\n(stopped after {SECONDS_A_BLOCK} s)", 124
    return output, run.returncode


def run_sh(path, block):
    output, status = bash("set -e\n" + "\n".join(block.text))
    if status != 0:
        print("\n".join(output.split("\n")[-40:]))
        fail(path, block.line, f"these commands fail with status {status}")


def console_commands(block):
    """(line number, command, expected lines) of each command of a console block."""
    commands, goes_on = [], False
    for number, line in enumerate(block.text, block.line + 1):
        if goes_on:
            commands[-1][1] += "\n" + re.sub(r"^> ", "", line)
        elif line.startswith("$ "):
            commands.append([number, line[2:], []])
        elif commands:
            commands[-1][2].append(line)
        else:
            return None
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return commands


def first_difference(expected, real):
    """Where real is not what expected allows: (index into expected, message), or None."""
    if "..." not in expected:
        for i, (e, r) in enumerate(zip(expected, real)):
            if e != r:
                return i, f"the line is really\n    {r}"
        if len(real) > len(expected):
            return len(expected) - 1, f"a line is missing after this one:\n    {real[len(expected)]}"
        return (len(real), "there is no such line") if len(expected) > len(real) else None
    cut = expected.index("...")
    head = first_difference(expected[:cut], real[:cut])
    if head:
        return head
    rest, last = expected[cut + 1:], None
    for start in range(cut, len(real) + 1):  # the first place from which the rest fits
        last = first_difference(rest, real[start:])
        if last is None:
            return None
    return cut + 1, "this line and those after it do not end the output"


def run_console(path, block):
    commands = console_commands(block)
    if not commands:
        fail(path, block.line, "a console block begins with a line `$ command`")
        return
    output, _ = bash("".join(f"{command}\n__s=$?; printf '{MARK}%d{MARK}' $__s; (exit $__s)\n"
                             for _, command, _ in commands))
    pieces = output.split(MARK)
    for n, (number, command, expected) in enumerate(commands):
        if 2 * n + 1 >= len(pieces):
            fail(path, number, f"did not finish: {command}\n{pieces[-1]}")
            return
        real, status = pieces[2 * n].split("\n"), int(pieces[2 * n + 1])
        if real[-1] == "":
            real.pop()
        shown = n + 1 < len(commands) and commands[n + 1][1] == "echo $?"
        difference = first_difference(expected, real)
        if difference:
            fail(path, number + command.count("\n") + 1 + difference[0],
                 f"`{command}` prints something else: {difference[1]}")
        elif status != 0 and not shown:
            fail(path, number, f"`{command}` exits with status {status}, unmentioned")


def check_blocks(path, blocks):
    """Runs what is to be run; how many blocks were."""
    count = 0
    for block in blocks:
        place = f"{path.relative_to(ROOT)}:{block.line}"
        if block.reason:
            print(f"  {place}: not run: {block.reason}")
        elif block.language in ("sh", "console"):
            print(f"  {place}: {block.text[0] if block.text else ''}", flush=True)
            (run_sh if block.language == "sh" else run_console)(path, block)
            count += 1
        elif block.language in ("bash", "shell", "shell-session", "zsh"):
            fail(path, block.line, f"a {block.language} block is never run: say sh or console")
        elif not block.language and block.text and block.text[0].startswith("$ "):
            fail(path, block.line, "a block without a language is never run: say console")
    return count


def files_to_check(names):
    if names:
        return [pathlib.Path(name).resolve() for name in names]
    found = [ROOT / "README.md"]
    for folder in ("docs", "lessons"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


def self_test():
    path = ROOT / "tests" / "data" / "broken_docs.md"
    prose, blocks = parse(path)
    check_links(path, prose)
    check_blocks(path, blocks)
    lines = path.read_text(encoding="utf-8").split("\n")
    expected = [int(n) for n in re.findall(r"\d+", lines[-2])]
    found = sorted(line for _, line, _ in failures)
    print(f"check-docs self-test: mistakes at lines {expected}, found at {found}")
    return 0 if found == expected else 1


def main(arguments):
    if "--self-test" in arguments:
        return self_test()
    links_only = "--links-only" in arguments
    files = files_to_check([a for a in arguments if a != "--links-only"])
    run = outside = 0
    for path in files:
        if not path.exists():
            fail(path, 1, "there is no such file")
            continue
        prose, blocks = parse(path)
        outside += check_links(path, prose)
        run += 0 if links_only else check_blocks(path, blocks)
    print(f"check-docs: {len(files)} files, {run} blocks run, {outside} links to other sites "
          f"not followed, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
