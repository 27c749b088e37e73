#!/usr/bin/env python3
"""Writes the tables of docs/l2.md: DRAM bytes that an H200 counted, and those of the model.

build/tests/test_l2_h200 and build/tests/test_l2_twins run the model on every row of the recordings
and print a line "row; ..." for each. Here these lines become tables, between the markers of the
page.

Usage: make_l2_tables.py [--tests FOLDER] [--check]
--check writes nothing and fails if the page is not what would be written now.
"""
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "l2.md"
PROGRAMS = ("test_l2_twins", "test_l2_h200")
NAMES = {"pytorch_flash_attention_2": "FlashAttention-2", "cudnn_9.19": "cuDNN"}
BEGIN, END = "<!-- written by `make l2-tables` -->", "<!-- end of what it writes -->"
READS, WRITES = 0.05, 0.10  # how near is near
LARGE = 10_000_000  # bytes: of less, errors in percent say little


class Row:
    """A run: bytes read from DRAM and written to it, measured and modelled."""

    def __init__(self, line):
        kernel, self.shape, *numbers = line.split("; ")[1:]
        self.kernel = NAMES.get(kernel, f"`{kernel}`")
        self.read, self.model_read, self.written, self.model_written = map(int, numbers)

    def reads_near(self):
        return near(self.model_read, self.read, READS)

    def writes_near(self):
        return near(self.model_written, self.written, WRITES)


def near(modelled, measured, tolerance):
    """Whether it is, or None if too little was measured."""
    return abs(modelled / measured - 1) <= tolerance if measured >= LARGE else None


def rows_of(folder, program):
    run = subprocess.run([folder / program], capture_output=True, text=True, check=False, cwd=ROOT)
    if run.returncode != 0:
        sys.exit(f"{program}: status {run.returncode}\n{run.stdout}{run.stderr}")
    rows = [Row(line) for line in run.stdout.splitlines() if line.startswith("row; ")]
    return rows or sys.exit(f"{program}: no rows")


def error(modelled, measured, is_near):
    if is_near is None:
        return ""
    text = f"{100 * (modelled / measured - 1):+.1f} %"
    return text if is_near else f"**{text}**"


def table(header, rows, left):
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    return [f"| {' | '.join(cells)} |" for cells in [header, rule, *rows]] + [""]


def groups(rows):
    found = {}
    for row in rows:
        found.setdefault(row.kernel, []).append(row)
    return found


def of_large(judged):
    """"3 of 4": near, of those large enough to be judged."""
    large = [is_near for is_near in judged if is_near is not None]
    return f"{sum(large)} of {len(large)}" if large else ""


def summary_row(name, rows):
    errors = [abs(row.model_read / row.read - 1) for row in rows if row.read >= LARGE]
    return [name, str(len(rows)), of_large([row.reads_near() for row in rows]),
            of_large([row.writes_near() for row in rows]),
            f"{100 * statistics.median(errors):.1f} %"]


def summary(rows):
    cells = [summary_row(kernel, group) for kernel, group in groups(rows).items()]
    return table(["kernel", "rows", "reads within 5 %", "writes within 10 %", "median error, read"],
                 cells + [summary_row("all", rows)], 1)


def megabytes(count):
    return f"{count / 1e6:,.2f}"


def all_rows(rows):
    return table(["kernel", "run", "read", "model", "error", "written", "model", "error"],
                 [[row.kernel, row.shape, megabytes(row.read), megabytes(row.model_read),
                   error(row.model_read, row.read, row.reads_near()), megabytes(row.written),
                   megabytes(row.model_written),
                   error(row.model_written, row.written, row.writes_near())] for row in rows], 2)


def text(folder):
    twins, production = (rows_of(folder, program) for program in PROGRAMS)
    return "\n".join(
        [BEGIN, "", "Our kernels, of the rows that move more than 10 MB:", "", *summary(twins),
         "Production kernels:", "", *summary(production),
         "Every row, in 10^6 bytes, errors of more than 10 MB. Attention of ours: heads x N x d; of",
         "production: batch x heads x N x d.", "", *all_rows(twins + production), END])


def main(arguments):
    folder = ROOT / "build" / "tests"
    if arguments[:1] == ["--tests"] and len(arguments) > 1:
        folder = pathlib.Path(arguments[1]).resolve()
        arguments = arguments[2:]
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    page = PAGE.read_text(encoding="utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"{PAGE.relative_to(ROOT)}: must have one line {BEGIN} and one {END}")
    before, rest = page.split(BEGIN)
    now = before + text(folder) + rest.split(END)[1]
    if arguments != ["--check"]:
        PAGE.write_text(now, encoding="utf-8")
    elif now != page:
        line = next(n for n, (a, b) in enumerate(zip(page.split("\n"), now.split("\n") + [None]), 1)
                    if a != b)
        print(f"{PAGE.relative_to(ROOT)}:{line}: not what is written now: make l2-tables")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
