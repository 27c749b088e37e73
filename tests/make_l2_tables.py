#!/usr/bin/env python3
"""Writes the tables of docs/l2.md: DRAM bytes that an H200 counted, and those of the model.

build/tests/test_l2_h200, test_l2_twins and test_l2_curves run the model on every row of the
recordings and print a line "row; ..." or "point; ..." for each. Here these lines become tables,
between the markers of the page.

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
CURVES = "test_l2_curves"
NAMES = {"pytorch_flash_attention_2": "FlashAttention-2", "cudnn_9.19": "cuDNN"}
BEGIN, END = "<!-- written by `make l2-tables` -->", "<!-- end of what it writes -->"
READS, WRITES = 0.05, 0.10  # how near is near
LARGE = 10_000_000  # bytes: of less, errors in percent say little
PLACES = 0.10  # of the median: by how much reads differ where the places of arrays matter
MIB = 1 << 20
# Of the curves, what the page shows: a title, pattern, blocks, passes, sizes in MiB, and whether
# it is of reads or writes.
SHOWN = (
    ("each block reads its own part of them 9 times: read", "read_own", 132, 9,
     (36, 40, 44, 48, 52, 56), True),
    ("the same, 16 blocks: read", "read_own", 16, 9, (36, 40, 44, 48, 52, 56), True),
    ("all blocks read all of them 5 times: read", "read_all", 132, 5,
     (24, 28, 30, 32, 34, 36), True),
    ("written once: written", "write", 132, 1, (20, 24, 28, 32, 64, 192), False),
    ("written 9 times: written", "write", 132, 9, (20, 24, 28, 32, 40, 64), False),
    ("copied, blocks in turns: written", "copy_in_order", 132, 1,
     (16, 24, 32, 64, 128, 192), False),
    ("two added, blocks in turns: written", "add_in_order", 132, 1,
     (16, 24, 32, 64, 128, 192), False),
    ("added to others 9 times: read", "accumulate", 132, 9, (16, 18, 20, 22, 24, 32), True),
    ("the same, 16 blocks: read", "accumulate", 16, 9, (16, 18, 20, 22, 24, 32), True),
)


class Row:
    """A run: bytes read from DRAM and written to it, measured and modelled."""

    def __init__(self, line):
        kernel, self.shape, *numbers = line.split("; ")[1:]
        self.kernel = NAMES.get(kernel, f"`{kernel}`")
        self.read, self.model_read, self.written, self.model_written, *spreads = map(int, numbers)
        self.spreads = list(zip(spreads[::2], spreads[1::2]))  # least and most of the four

    def places_matter(self):
        least, most = self.spreads[0]
        return self.read >= LARGE and most - least > PLACES * self.read

    def reads_near(self):
        return near(self.model_read, self.read, READS)

    def writes_near(self):
        return near(self.model_written, self.written, WRITES)


def near(modelled, measured, tolerance):
    """Whether it is, or None if too little was measured."""
    return abs(modelled / measured - 1) <= tolerance if measured >= LARGE else None


def lines_of(folder, program, first):
    run = subprocess.run([folder / program], capture_output=True, text=True, check=False, cwd=ROOT)
    if run.returncode != 0:
        sys.exit(f"{program}: status {run.returncode}\n{run.stdout}{run.stderr}")
    lines = [line for line in run.stdout.splitlines() if line.startswith(first)]
    return lines or sys.exit(f"{program}: no lines {first}")


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
    return f"{round(count / 1e6, 2) + 0.0:,.2f}"  # no -0.00


def all_rows(rows):
    return table(["kernel", "run", "read", "model", "error", "written", "model", "error"],
                 [[row.kernel, row.shape, megabytes(row.read), megabytes(row.model_read),
                   error(row.model_read, row.read, row.reads_near()), megabytes(row.written),
                   megabytes(row.model_written),
                   error(row.model_written, row.written, row.writes_near())] for row in rows], 2)


def places(rows):
    def cell(median, spread):
        return ", ".join(f"{count / 1e6:,.1f}" for count in (spread[0], median, spread[1]))
    return table(["kernel", "run", "read", "model", "written", "model"],
                 [[row.kernel, row.shape,
                   *(cell(*pair) for pair in zip((row.read, row.model_read, row.written,
                                                  row.model_written), row.spreads))]
                  for row in rows if row.places_matter()], 2)


def curves(lines):
    """For each curve that is shown a line of sizes, one of the GPU and one of the model."""
    points = {}
    for line in lines:
        pattern, *numbers = line.split("; ")[1:]
        blocks, passes, size, _, *counts = map(int, numbers)
        points[pattern, blocks, passes, size] = counts
    cells = []
    for title, pattern, blocks, passes, sizes, is_read in SHOWN:
        found = [points[pattern, blocks, passes, size * MIB] for size in sizes]
        first = 0 if is_read else 2
        cells += [[title, "MiB", *map(str, sizes)],
                  ["", "H200", *(f"{counts[first] / 1e6:,.1f}" for counts in found)],
                  ["", "model", *(f"{counts[first + 1] / 1e6:,.1f}" for counts in found)]]
    return table(["", "", *[""] * len(SHOWN[0][4])], cells, 2)


def text(folder):
    twins, production = ([Row(line) for line in lines_of(folder, program, "row; ")]
                         for program in PROGRAMS)
    return "\n".join(
        [BEGIN, "", "Our kernels, of the rows that move more than 10 MB:", "", *summary(twins),
         "Production kernels:", "", *summary(production), "Together:", "",
         *table(["", "rows", "reads within 5 %", "writes within 10 %", "median error, read"],
                [summary_row("all", twins + production)], 1),
         "Every row, in 10^6 bytes, errors of more than 10 MB. Attention of ours: heads x N x d; of",
         "production: batch x heads x N x d.", "", *all_rows(twins + production),
         "Where the places of arrays change what is read by more than a tenth: least, median and",
         "most of five places, in 10^6 bytes.", "", *places(twins),
         "Simple patterns by the size of their data, in 10^6 bytes from and to DRAM.", "",
         *curves(lines_of(folder, CURVES, "point; ")), END])


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
