#!/usr/bin/env python3
"""Times the steps of the ladder beside PyTorch's attention and cuBLAS, in one process.

usage: bench.py LIBRARY [--json FILE] [--rounds N] [--kernels 05,10] [--head-dims 64,128]
                [--seqlens 1024,4096]

LIBRARY is libflashlab_ladder.so. Candidates take turns, a launch each, in another order every
round, so that all see the same clocks: what ran before decides what power is left. A line is the
median of the rounds; candidates that take four times as long as the fastest run in a quarter of
them. The shapes are those of the FlashAttention papers: batch * N = 16384, heads * d = 2048,
4 N^2 d FLOPs a head, half of them with a causal mask; random normal inputs, four tensors of 64 MiB,
more than L2 holds. Twice the same kernel, the last one chosen, gives the noise.

--kernels chooses steps by how their names begin. PyTorch's kernels always run.
"""

import argparse
import ctypes
import datetime
import functools
import json
import math
import random
import statistics
import subprocess
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:
    sys.exit("bench.py: python3 has no torch: PyTorch is what the ladder is compared with")

TOKENS, HIDDEN = 16384, 2048
HEAD_DIMS, SEQLENS = (64, 128, 256), (1024, 4096, 16384)
WARMUP = 3
SLOW, SLOW_EVERY = 4, 4  # times the fastest; rounds
DTYPE_BF16 = 2  # enum dtype
MASK_NONE, MASK_CAUSAL = 0, 1  # enum mask


class Attention(ctypes.Structure):
    """struct attention of core/attention.h."""

    _fields_ = [(name, ctypes.c_int) for name in (
        "batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")] + [
        ("scale", ctypes.c_float), ("mask", ctypes.c_int), ("dtype", ctypes.c_int),
        ("block_q", ctypes.c_int), ("block_k", ctypes.c_int), ("tiled_gemm", ctypes.c_bool)]


class Tensor(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("batch", ctypes.c_int64), ("head", ctypes.c_int64),
                ("row", ctypes.c_int64)]


class Tensors(ctypes.Structure):
    _fields_ = [(name, Tensor) for name in "QKVO"] + [
        ("LSE", ctypes.c_void_p), ("taken", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 2048)]


class Shape:
    """One problem with its tensors (batch, heads, seqlen, head_dim) on the GPU."""

    def __init__(self, head_dim, seqlen, causal):
        self.d, self.n, self.causal = head_dim, seqlen, causal
        self.batch, self.heads = TOKENS // seqlen, HIDDEN // head_dim
        self.q, self.k, self.v, self.o = (
            torch.randn(self.batch, self.heads, seqlen, head_dim, device="cuda",
                        dtype=torch.bfloat16) for _ in range(4))
        self.lse = torch.empty(self.batch, self.heads, seqlen, device="cuda")
        self.taken = torch.zeros(2, device="cuda", dtype=torch.int32)
        self.flops = 4.0 * seqlen * seqlen * head_dim * self.heads * self.batch
        self.flops *= 0.5 if causal else 1.0

    def attention(self):
        return Attention(self.batch, self.heads, self.heads, self.n, self.n, self.d, self.d,
                         1 / math.sqrt(self.d), MASK_CAUSAL if self.causal else MASK_NONE,
                         DTYPE_BF16, 1, 1, False)

    def tensors(self):
        def view(x):
            return Tensor(x.data_ptr(), x.stride(0), x.stride(1), x.stride(2))
        return Tensors(view(self.q), view(self.k), view(self.v), view(self.o),
                       self.lse.data_ptr(), self.taken.data_ptr(),
                       torch.cuda.current_stream().cuda_stream)

    @functools.cached_property
    def exact(self):
        """O of the last plane, in float64."""
        q, k, v = (x[-1, -1].double() for x in (self.q, self.k, self.v))
        s = q @ k.T / math.sqrt(self.d)
        if self.causal:
            s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
        return torch.softmax(s, 1) @ v

    def largest_error(self, o):
        return (self.exact - o[-1, -1].double()).abs().max().item()


def pytorch(backend):
    def launcher(shape):
        def launch():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    shape.q, shape.k, shape.v, is_causal=shape.causal)
        return launch
    return launcher


def ladder(library, step):
    def launcher(shape):
        a, t, error = shape.attention(), shape.tensors(), Error()

        def launch():
            if library.ladder_launch(step, ctypes.byref(a), ctypes.byref(t),
                                     ctypes.byref(error)):
                sys.exit("bench.py: " + error.text.decode())
            return shape.o
        return launch
    return launcher


def time_round(launches, names):
    """Milliseconds of one launch of each, in that order."""
    events = {name: [torch.cuda.Event(enable_timing=True) for _ in range(2)] for name in names}
    for name in names:
        events[name][0].record()
        launches[name]()
        events[name][1].record()
    torch.cuda.synchronize()
    return {name: begin.elapsed_time(end) for name, (begin, end) in events.items()}


def time_in_turns(launches, rounds):
    """Milliseconds of each launch, by name."""
    for _ in range(WARMUP):
        warm = time_round(launches, list(launches))
    slow = {name for name, ms in warm.items() if ms > SLOW * min(warm.values())}
    times = {name: [] for name in launches}
    order = random.Random(1)
    for i in range(rounds):
        names = [name for name in launches if name not in slow or i % SLOW_EVERY == 0]
        order.shuffle(names)
        for name, ms in time_round(launches, names).items():
            times[name].append(ms)
    return times


def cublas_tflops(rounds):
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    times = time_in_turns({"cublas": lambda: a @ b}, rounds)["cublas"]
    return round(2.0 * n ** 3 / statistics.median(times) / 1e9, 1)


def steps_of(library, wanted):
    """Names of the steps that begin with one of wanted, all if it is empty, with their numbers."""
    library.ladder_name.restype = ctypes.c_char_p
    count = ctypes.c_int.in_dll(library, "ladder_step_count").value
    names = {library.ladder_name(step).decode(): step for step in range(count)}
    for start in wanted:
        if not any(name.startswith(start) for name in names):
            sys.exit(f"bench.py: --kernels {start}: no step begins so: {', '.join(names)}")
    return {name: step for name, step in names.items()
            if not wanted or name.startswith(tuple(wanted))}


def candidates_of(library, wanted):
    steps = steps_of(library, wanted)
    found = {name: ladder(library, step) for name, step in steps.items()}
    last = list(steps)[-1]
    found[last + " again"] = found[last]
    found["PyTorch FA2"] = pytorch(SDPBackend.FLASH_ATTENTION)
    found["PyTorch cuDNN"] = pytorch(SDPBackend.CUDNN_ATTENTION)
    return found


def machine(options):
    chosen = [f"--{name.replace('_', '-')} {','.join(map(str, value))}"
              for name, value in vars(options).items() if isinstance(value, list) and value]
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True, check=False).stdout.split("\n")[0]
    return {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
            "date": datetime.date.today().isoformat(), "command": " ".join(["bench.py", *chosen]) if chosen else "make gpu-bench"}


def bench_shape(candidates, shape, rounds):
    launches = {name: launcher(shape) for name, launcher in candidates.items()}
    errors = {name: shape.largest_error(launch()) for name, launch in launches.items()}
    times = time_in_turns(launches, rounds)
    return [{"head_dim": shape.d, "causal": shape.causal, "seqlen": shape.n, "kernel": name,
             "median_ms": round(statistics.median(ms), 4), "fastest_ms": round(min(ms), 4),
             "slowest_ms": round(max(ms), 4),
             "tflops": round(shape.flops / statistics.median(ms) / 1e9, 1),
             "error": float(f"{errors[name]:.2e}")}
            for name, ms in times.items()]


def print_shape(rows):
    first = rows[0]
    print(f"d {first['head_dim']}{' causal' if first['causal'] else ''}, N {first['seqlen']}")
    for row in rows:
        print(f"  {row['kernel']:20} {row['median_ms']:9.3f} ms {row['tflops']:7.1f} TFLOP/s"
              f"   error {row['error']:.1e}")


def text_of(result):
    """JSON with a row a line."""
    head = json.dumps({name: value for name, value in result.items() if name != "rows"})
    rows = ",\n  ".join(json.dumps(row) for row in result["rows"])
    return f'{head[:-1]},\n "rows": [\n  {rows}\n]}}\n'


def numbers_of(allowed):
    """A parser of comma-separated numbers, each one of those allowed."""
    def parse(text):
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not set(numbers) <= set(allowed):
            raise argparse.ArgumentTypeError(
                f"{text}: must be some of {', '.join(map(str, allowed))}, separated by commas")
        return numbers
    return parse


def options_of():
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__.split("\n")[0])
    parser.add_argument("launchers", metavar="LIBRARY",
                        help="libflashlab_ladder.so, which `make ladder` builds")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=60, metavar="N")
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=[],
                        metavar="05,10", help="steps whose names begin so (default: all)")
    parser.add_argument("--head-dims", type=numbers_of(HEAD_DIMS), default=[], metavar="64,128")
    parser.add_argument("--seqlens", type=numbers_of(SEQLENS), default=[], metavar="1024,4096")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: must be at least 1")
    return options


def main():
    options = options_of()
    if not torch.cuda.is_available():
        sys.exit("bench.py: PyTorch finds no usable GPU")
    try:
        candidates = candidates_of(ctypes.CDLL(options.launchers), options.kernels)
    except OSError as error:
        sys.exit(f"bench.py: {error}")
    result = {"machine": machine(options), "rounds": options.rounds,
              "cublas_tflops": [cublas_tflops(options.rounds)], "rows": []}
    for head_dim in options.head_dims or HEAD_DIMS:
        for causal in (False, True):
            for seqlen in options.seqlens or SEQLENS:
                rows = bench_shape(candidates, Shape(head_dim, seqlen, causal), options.rounds)
                print_shape(rows)
                result["rows"] += rows
    result["cublas_tflops"].append(cublas_tflops(options.rounds))
    print("cuBLAS bf16 8192^3:", ", ".join(f"{x:.0f}" for x in result["cublas_tflops"]),
          "TFLOP/s")
    if options.json:
        try:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text_of(result))
        except OSError as error:
            sys.exit(f"bench.py: {error}")


if __name__ == "__main__":
    main()
