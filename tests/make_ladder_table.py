#!/usr/bin/env python3
"""Writes the tables of docs/ladder.md from what the benchmark of the ladder measured.

Usage: make_ladder_table.py [--check | --csv FILE]
The tables stand between two marker lines. --check writes nothing and fails if they are not what
would be written now. --csv writes what plots/ladder.gp draws.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ladder.md"
RESULTS = ROOT / "cuda" / "results" / "h200_ladder.json"
BEGIN, END = "<!-- tables: make ladder-tables -->", "<!-- end of tables -->"
FA2, CUDNN, AGAIN = "PyTorch FA2", "PyTorch cuDNN", " again"
SHORT = {1024: "1k", 4096: "4k", 16384: "16k"}


def cells_of(result):
    """TFLOP/s by kernel and (head_dim, causal, seqlen)."""
    cells = {}
    for row in result["rows"]:
        shape = row["head_dim"], row["causal"], row["seqlen"]
        cells.setdefault(row["kernel"], {})[shape] = row["tflops"]
    return cells


def noise_of(cells):
    """The largest difference between two measurements of the same kernel, as a share."""
    name = next(name for name in cells if name.endswith(AGAIN))
    first = cells[name[:-len(AGAIN)]]
    return max(abs(second / first[shape] - 1) for shape, second in cells[name].items())


def table(cells, head_dim):
    shapes = sorted((shape for shape in cells[FA2] if shape[0] == head_dim))
    heads = [f"{'causal ' if causal else ''}{SHORT[n]}" for _, causal, n in shapes]
    lines = [f"| d {head_dim} | " + " | ".join(heads) + " |", "|---" * (len(shapes) + 1) + "|"]
    steps = [name for name in cells if name[0].isdigit() and not name.endswith(AGAIN)]
    for name in steps + [FA2, CUDNN]:
        lines.append(f"| {name} | " + " | ".join(f"{cells[name][s]:.0f}" for s in shapes) + " |")
    for label, of, other in (("best of 01 to 05 / FA2", [n for n in steps if n < "06"], FA2),
                             ("best step / cuDNN", steps, CUDNN)):
        best = [max(cells[name][s] for name in of) / cells[other][s] for s in shapes]
        lines.append(f"| {label} | " + " | ".join(f"{ratio:.2f}" for ratio in best) + " |")
    return "\n".join(lines)


def tables(result):
    cells = cells_of(result)
    machine = result["machine"]
    cublas = " and ".join(f"{tflops:.0f}" for tflops in result["cublas_tflops"])
    return "\n\n".join([
        f"TFLOP/s on an {machine['gpu']}, driver {machine['driver']}, CUDA {machine['cuda']}, "
        f"PyTorch {machine['torch']},\ncuDNN {machine['cudnn']}, {machine['date']}, "
        f"`{machine['command']}`. cuBLAS, bf16 8192^3, before and after:\n{cublas}. Two "
        f"measurements of the same kernel differ by at most {100 * noise_of(cells):.1f} %.",
        *(table(cells, head_dim)
          for head_dim in sorted({shape[0] for shape in cells[FA2]}))])


def csv_of(result):
    """One line a kernel: d 128, N 4096, with and without a causal mask."""
    cells = cells_of(result)
    lines = ["kernel,full,causal,cublas"]
    for name, of in cells.items():
        if not name.endswith(AGAIN):
            lines.append(f"{name},{of[128, False, 4096]:.1f},{of[128, True, 4096]:.1f},"
                         f"{max(result['cublas_tflops']):.1f}")
    return "\n".join(lines) + "\n"


def main():
    with open(RESULTS, encoding="utf-8") as file:
        result = json.load(file)
    if sys.argv[1:2] == ["--csv"] and len(sys.argv) == 3:
        pathlib.Path(sys.argv[2]).write_text(csv_of(result), encoding="utf-8")
        return
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    new = f"{before}{BEGIN}\n{tables(result)}\n{END}{rest.split(END)[1]}"
    if sys.argv[1:] == ["--check"]:
        if new != page:
            sys.exit("docs/ladder.md: its tables are not those of cuda/results/h200_ladder.json: "
                     "make ladder-tables")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
