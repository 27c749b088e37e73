#!/usr/bin/env python3
"""Make the PNG files in image/, seeds of the fuzzer and data of test_image.

    python3 -m venv venv && venv/bin/pip install pypng==0.20220715.0
    venv/bin/python make_images.py

pypng writes them without libpng, which reads them. All are 16 x 18 pixels; of column x and row y
red is 16 x, green 14 y, blue 7 (x + y); grey is red.
"""
import pathlib

import png

HERE = pathlib.Path(__file__).resolve().parent / "image"
WIDTH, HEIGHT = 16, 18


def colour(x, y):
    """Red, green and blue, 8 bits each."""
    return 16 * x, 14 * y, 7 * (x + y)


def rows(pixel):
    """Rows of samples; pixel(x, y) gives those of one pixel."""
    return [[sample for x in range(WIDTH) for sample in pixel(x, y)] for y in range(HEIGHT)]


def write(name, pixel, **options):
    """Write a picture in the given kind of PNG."""
    with open(HERE / name, "wb") as file:
        png.Writer(WIDTH, HEIGHT, compression=9, **options).write(file, rows(pixel))


def alpha(x):
    """Left transparent, then half, then opaque."""
    return 0 if x < 4 else 128 if x < 8 else 255


def main():
    """Write all of them."""
    write("rgb.png", colour, greyscale=False)
    write("interlaced.png", colour, greyscale=False, interlace=True)
    write("rgb16.png", lambda x, y: [257 * c for c in colour(x, y)], greyscale=False, bitdepth=16)
    write("alpha.png", lambda x, y: (*colour(x, y), alpha(x)), greyscale=False, alpha=True)
    write("grey.png", lambda x, y: colour(x, y)[:1], greyscale=True)
    write("grey16.png", lambda x, y: [257 * colour(x, y)[0]], greyscale=True, bitdepth=16)
    write("bits.png", lambda x, y: [x % 2], greyscale=True, bitdepth=1)
    write("palette.png", lambda x, y: [x], palette=[(16 * i, 0, 255 - 16 * i) for i in range(16)],
          bitdepth=4)


if __name__ == "__main__":
    main()
