#!/usr/bin/env python3
"""Writes docs/counters.md: every measured counter beside its prediction and its simulation.

Our CUDA kernels come from cuda/results/h200_counters.csv, which holds all three numbers of every
run. The production kernels come from lessons/recordings/h200_counters.csv, which holds only what
was measured: the tool (flashlab traffic --json) predicts and simulates them here. Exits 1 if any
three numbers differ; the page then shows them in bold.

Usage: make_counter_tables.py [--tool FLASHLAB] [--check | --self-test]
--check writes nothing and fails also if the page is not what would be written now. --self-test
edits numbers of both files, one at a time, and fails if any edit goes unnoticed.
"""
import copy
import csv
import functools
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "counters.md"
OURS = ROOT / "cuda" / "results" / "h200_counters.csv"
REFERENCE = ROOT / "lessons" / "recordings" / "h200_counters.csv"
REFERENCE_FACTS = REFERENCE.parent / "README.md"

WAYS = ("load", "store", "reduce")
DTYPES = {"fp16": "f16"}  # the recordings' names, the tool's names

# Each production implementation: whether its tiles move by the copy engine (TMA); its counters,
# as (name on the page, column, what the tool counts there); the columns that must be 0, because
# it moves nothing that way. The first two counters are its loads and its stores.
IMPLEMENTATIONS = {
    "pytorch_flash_attention_2": (
        False,
        (("load sectors", "global_load_sectors", lambda a: a["read_sectors"]),
         ("store sectors", "global_store_sectors",
          lambda a: written(a, "O", "sectors") + written(a, "LSE", "sectors")),
         ("reduction sectors", "global_reduction_sectors", lambda a: a["reduced_sectors"])),
        ("tma_load_bytes", "tma_store_bytes")),
    "cudnn_9.19": (
        True,
        (("TMA load bytes", "tma_load_bytes", lambda a: a["read_bytes"]),
         ("TMA store bytes", "tma_store_bytes", lambda a: written(a, "O", "bytes")),
         ("store sectors", "global_store_sectors", lambda a: written(a, "LSE", "sectors")),
         ("reduction sectors", "global_reduction_sectors", lambda a: a["reduced_sectors"])),
        ("global_load_sectors",)),
}


class Run:
    """One launch: its shape in words, and predicted, simulated and measured of each counter.

    passes: what was measured of shared memory, as (column, cell), if anything was.
    """

    def __init__(self, kernel, shape, counts, causal=None, passes=()):
        self.kernel, self.shape, self.counts, self.causal = kernel, shape, counts, causal
        self.passes = passes

    def equal(self):
        return all(len(set(three)) == 1 for three in self.counts.values())


def written(account, tensor, unit):
    return account["tensors"][tensor][f"written_{unit}"]


def read_table(path):
    """The comment lines of a CSV file, and its rows by column."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[1:].strip() for line in lines if line.startswith("#")]
    header, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    for row in rows:
        if len(row) != len(header):
            sys.exit(f"{path.relative_to(ROOT)}: not {len(header)} fields: {','.join(row)}")
    if not rows:
        sys.exit(f"{path.relative_to(ROOT)}: no rows")
    return comments, [dict(zip(header, row)) for row in rows]


def reference_facts():
    """The first table of the recordings' README: where and with what they were measured."""
    text = REFERENCE_FACTS.read_text(encoding="utf-8")
    facts = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", text.split("| column |")[0], re.MULTILINE)
    return facts or sys.exit(f"{REFERENCE_FACTS.relative_to(ROOT)}: no table of what was used")


def both(first, second):
    """Two extents, or the one that they are."""
    return first if first == second else f"{first}/{second}"


def shape_of_ours(row):
    if row["batch"]:
        return (f"b {row['batch']}, h {both(row['heads_q'], row['heads_kv'])}, "
                f"N {both(row['seqlen_q'], row['seqlen_k'])}, "
                f"d {both(row['head_dim'], row['head_dim_v'])}, {row['mask']}, "
                f"{row['block_q']} x {row['block_k']}")
    extents = " x ".join(row[name] for name in ("rows", "cols", "depth") if row[name])
    return extents + (f", tile {row['tile']}" if row["tile"] else "")


def passes_of_ours(row):
    """Shared memory's instructions and the passes over its banks; files may lack these columns."""
    if "shared_load_wavefronts" not in row:
        return ()
    return tuple((f"shared {way}s / passes",
                  " / ".join(f"{int(row[f'shared_{way}_{what}']):,}"
                             for what in ("instructions", "wavefronts")))
                 for way in ("load", "store"))


def runs_of_ours(rows):
    return [Run(row["kernel"], shape_of_ours(row),
                {way: tuple(int(row[f"{who}_{way}"])
                            for who in ("predicted", "simulated", "measured")) for way in WAYS},
                passes=passes_of_ours(row))
            for row in rows]


def tool_options(row):
    """The row's problem for the tool: tiles of K and V are as tall as those of Q."""
    tma = IMPLEMENTATIONS[row["implementation"]][0]
    return ("--algorithm", "flash2", "--batch", row["batch"], "--heads-q", row["heads"],
            "--heads-kv", row["heads"], "--seqlen", row["seqlen"], "--head-dim", row["head_dim"],
            "--dtype", DTYPES[row["dtype"]], "--mask", "causal" if row["causal"] == "1" else "none",
            "--block-q", row["block_q"], "--block-k", row["block_q"],
            "--machine", "H200") + (("--tma",) if tma else ())


@functools.cache  # the self-test asks for the same rows again and again
def count(tool, options):
    """What the tool predicts and simulates. Its status is 1 if those differ: the page says so."""
    run = subprocess.run([tool, "traffic", "--json", *options], capture_output=True, text=True,
                         check=False)
    if run.returncode not in (0, 1) or not run.stdout:
        sys.exit(f"flashlab traffic {' '.join(options)}: status {run.returncode}\n{run.stderr}")
    answer = json.loads(run.stdout)
    return answer["predicted"], answer["simulated"]


def forward(rows):
    return [row for row in rows if row["phase"] == "forward"]


def runs_of_reference(tool, rows):
    runs = []
    for row in forward(rows):
        _, counters, unused = IMPLEMENTATIONS[row["implementation"]]
        predicted, simulated = count(tool, tool_options(row))
        counts = {name: (of(predicted), of(simulated), int(row[column]))
                  for name, column, of in counters}
        # cuDNN writes the LSE only where a backward pass will need it, and then all of it.
        if row["implementation"].startswith("cudnn") and int(row["global_store_sectors"]) == 0:
            del counts["store sectors"]
        counts.update({column: (0, 0, int(row[column])) for column in unused if int(row[column])})
        runs.append(Run(row["implementation"],
                        f"b {row['batch']}, h {row['heads']}, N {row['seqlen']}, "
                        f"d {row['head_dim']}", counts, "yes" if row["causal"] == "1" else "no"))
    return runs


def complaints(runs):
    return [f"{run.kernel}, {run.shape}, {name}: predicted {p:,}, simulated {s:,}, measured {m:,}"
            for run in runs for name, (p, s, m) in run.counts.items() if not p == s == m]


def prose(text):
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False) + [""]


def table(header, rows, left=1):
    """A Markdown table; after the first columns all are aligned to the right."""
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    return [f"| {' | '.join(cells)} |" for cells in [header, rule, *rows]] + [""]


def groups(runs):
    """The runs of each kernel, in the order of the file."""
    found = {}
    for run in runs:
        found.setdefault(run.kernel, []).append(run)
    return found


def yes(equal):
    return "yes" if equal else "**no**"


def span(runs, name, unit=""):
    """The smallest and the largest of a measured counter."""
    values = [run.counts[name][2] for run in runs]
    low, high = f"{min(values):,}", f"{max(values):,}"
    return (low if low == high else f"{low} to {high}") + unit


def summary(ours, reference):
    rows = []
    for kernel, runs in list(groups(ours).items()) + list(groups(reference).items()):
        names, unit = WAYS, ""
        if kernel in IMPLEMENTATIONS:
            tma, counters, _ = IMPLEMENTATIONS[kernel]
            names = (counters[0][0], counters[1][0], "reduction sectors")
            unit = " bytes" if tma else ""
        rows.append([f"`{kernel}`", f"{len(runs):,}", f"{sum(run.equal() for run in runs):,}",
                     span(runs, names[0], unit), span(runs, names[1], unit), span(runs, names[2])])
    return table(["kernel", "runs", "equal", "load", "store", "reduce"], rows)


def example(rows, implementation):
    """The command that counts an implementation's first row, on lines that are not too long."""
    row = next(row for row in forward(rows) if row["implementation"] == implementation)
    command = " ".join(("build/flashlab", "traffic", *tool_options(row)))
    lines = textwrap.wrap(command, 96, subsequent_indent="    ", break_long_words=False,
                          break_on_hyphens=False)
    return ["```sh", *" \\\n".join(lines).split("\n"), "```", ""]


def reference_table(runs):
    return table(["shape", "causal", "counter", "predicted", "simulated", "measured", "equal"],
                 [[run.shape, run.causal, name] +
                  [f"{n:,}" if len(set(three)) == 1 else f"**{n:,}**" for n in three] +
                  [yes(len(set(three)) == 1)]
                  for run in runs for name, three in run.counts.items()], left=3)


def our_cell(three):
    p, s, m = (f"{n:,}" for n in three)
    return m if p == s == m else f"**predicted {p}, simulated {s}, measured {m}**"


def our_table(runs):
    return table(["shape", *WAYS, "equal", *(name for name, _ in runs[0].passes)],
                 [[run.shape, *(our_cell(run.counts[way]) for way in WAYS), yes(run.equal()),
                   *(cell for _, cell in run.passes)] for run in runs])


def page(tool, our_file, reference_rows):
    """The text of the page, and what is unequal."""
    (machine, made, *_), our_rows = our_file
    date, command = made.split(": ", 1)
    ours, reference = runs_of_ours(our_rows), runs_of_reference(tool, reference_rows)
    facts = reference_facts()
    backward = len(reference_rows) - len(reference)
    lines = ["<!-- Written by `make counter-tables`: change tests/make_counter_tables.py. -->",
             "# The table of counters", ""]
    lines += prose(
        "Three numbers of every run must be equal: *predicted* by the closed form, *simulated*, "
        "and *measured* by the hardware's counters. They count 32-byte sectors that load, store "
        "and reduction instructions ask for, or bytes that the copy engine (TMA) moves; "
        "[Counting](counting.md) has the rules.")
    lines += prose(
        f"Our CUDA kernels: {machine}; {date}, by `{command}`. "
        "All three numbers were written there "
        "([h200_counters.csv](../cuda/results/h200_counters.csv)); `make test` counts the "
        "attention kernels again.")
    lines += prose(
        "Production kernels: " + "; ".join(f"{name}: {value}" for name, value in facts) +
        " ([recordings](../lessons/recordings/README.md)). "
        "The tool predicts and simulates them when this page is made.")
    lines += ["## Summary", ""]
    lines += prose("*Equal* are the runs whose three numbers agree in every counter. Smallest and "
                   "largest measured counts, in sectors where no unit is given:")
    lines += summary(ours, reference)
    lines += ["## Production kernels", ""]
    lines += prose(
        "Shapes: b sequences, h heads, N queries and keys, d elements of a row. The forward passes "
        f"are here; the {backward} rows of backward passes in the recordings are not simulated yet "
        "and are left out.")
    for implementation, runs in groups(reference).items():
        tma = IMPLEMENTATIONS[implementation][0]
        with_lse = sum("store sectors" in run.counts for run in runs)
        lines += [f"### {implementation}", ""]
        lines += prose(
            "Q, K, V and O move by the copy engine, and no load instruction reads global memory. "
            f"{with_lse} of the {len(runs)} runs keep the LSE for a backward pass and store it by "
            "plain instructions. In the others no store was measured: they do not write it, and "
            "have no line for it. The first row is counted by"
            if tma else
            "Everything moves by load and store instructions, nothing by the copy engine. The "
            "first row is counted by")
        lines += example(reference_rows, implementation)
        lines += reference_table(runs)
    lines += ["## Our kernels", ""]
    lines += prose(
        "Where the three numbers are equal, the tables show the one. Shapes: a vector has its "
        "length, a softmax rows x columns, a matrix product rows x columns x depth. Attention has "
        "b sequences, h heads (query/kv if they differ), N (queries/keys), d (of Q and K/of V), "
        "the mask, and tiles Br x Bc.")
    if ours[0].passes:
        lines += prose(
            "Of shared memory, measured only: warps' load and store instructions, and the passes "
            "over the banks that they took. Where all accesses are of 4 bytes, what the passes "
            "exceed the instructions by are bank conflicts ([the CUDA kernels](cuda.md)).")
    for kernel, runs in groups(ours).items():
        lines += [f"### {kernel}", ""] + our_table(runs)
    return "\n".join(lines[:-1]) + "\n", complaints(ours + reference)


def stale(shown, written_now):
    """Where the page on disk is not what is written now, or None."""
    if shown == written_now:
        return None
    old, new = shown.split("\n"), written_now.split("\n")
    line = next((n for n, (a, b) in enumerate(zip(old, new), 1) if a != b),
                min(len(old), len(new)) + 1)
    return f"{PAGE.relative_to(ROOT)}:{line}: not what is written now: make counter-tables"


def self_test_of_passes(tool, our_file, reference_rows):
    """Shared memory's columns are shown where the file has them, and an edit of one is noticed."""
    columns = [f"shared_{way}_{what}" for way in ("load", "store")
               for what in ("instructions", "wavefronts")]
    our = copy.deepcopy(our_file)
    for row in our[1]:
        for column in columns:
            row.pop(column, None)
    without = page(tool, our, reference_rows)[0]
    assert " / passes" not in without and "Of shared memory" not in without
    for row in our[1]:
        row.update({column: str(7000 + n) for n, column in enumerate(columns)})
    text, wrong = page(tool, our, reference_rows)
    assert not wrong and text.count("Of shared memory") == 1
    assert text.count("| equal | shared loads / passes | shared stores / passes |") == len(
        {row["kernel"] for row in our[1]})
    assert text.count("| yes | 7,000 / 7,001 | 7,002 / 7,003 |") == len(our[1])
    for column in columns:
        edited = copy.deepcopy(our)
        edited[1][-1][column] = "6999"
        assert stale(text, page(tool, edited, reference_rows)[0]), column


def self_test(tool, our_file, reference_rows):
    """Every number that is compared, made larger by one, must be found, and nothing else."""
    text, wrong = page(tool, our_file, reference_rows)
    assert not wrong, wrong
    edits = 0

    def assert_found(our, reference, row, column):
        edited, found = page(tool, our, reference)
        kernel = row.get("kernel") or row["implementation"]
        assert len(found) == 1 and found[0].startswith(f"{kernel}, "), (column, found)
        assert "**no**" in edited and "**no**" not in text, column
        assert stale(text, edited), column

    for who in ("predicted", "simulated", "measured"):
        for way in WAYS:
            for row in (0, len(our_file[1]) - 1):
                our = copy.deepcopy(our_file)
                column = f"{who}_{way}"
                our[1][row][column] = str(int(our[1][row][column]) + 1)
                assert_found(our, reference_rows, our[1][row], column)
                edits += 1
    for implementation, (_, counters, unused) in IMPLEMENTATIONS.items():
        for column in [column for _, column, _ in counters] + list(unused):
            reference = copy.deepcopy(reference_rows)
            row = [r for r in forward(reference) if r["implementation"] == implementation][-1]
            row[column] = str(int(row[column]) + 1)
            assert_found(our_file, reference, row, column)
            edits += 1
    assert stale(text, page(tool, (our_file[0], our_file[1][1:]), reference_rows)[0]), "a row less"
    assert stale(text + "\n", text) and not stale(text, text)
    self_test_of_passes(tool, our_file, reference_rows)
    print(f"counter-tables self-test: {edits} edited numbers, all found")
    return 0


def main(arguments):
    tool = str(ROOT / "build" / "flashlab")
    if arguments[:1] == ["--tool"] and len(arguments) > 1:
        tool = str(pathlib.Path(arguments[1]).resolve())
        arguments = arguments[2:]
    if arguments not in ([], ["--check"], ["--self-test"]):
        sys.exit(__doc__)
    our_file, reference_rows = read_table(OURS), read_table(REFERENCE)[1]
    if arguments == ["--self-test"]:
        return self_test(tool, our_file, reference_rows)
    text, wrong = page(tool, our_file, reference_rows)
    if arguments == ["--check"]:
        old = stale(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", text)
        wrong += [old] if old else []
    else:
        PAGE.write_text(text, encoding="utf-8")
    for line in wrong:
        print(line)
    print(f"counter-tables: {len(our_file[1])} runs of our kernels, {len(forward(reference_rows))} "
          f"of production kernels, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
