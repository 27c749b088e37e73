#!/usr/bin/env python3
"""Checks that the lessons' figures are there and that something is drawn on them.

Every lesson must have left a PNG and an SVG for each of its figures. A PNG must decode and have
ink in several places, an SVG must be well-formed and have curves or marks and text.
Usage: check_plots.py DIRECTORY LESSON ...; check_plots.py --self-test
"""
import pathlib
import struct
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zlib

LEAST_INKED_ROWS = 0.2  # a blank canvas inks none; whether curves are drawn the SVG tells
MARKS = ("path", "use", "polyline", "polygon", "circle", "rect", "text", "image")


def name(element):
    return element.tag.rsplit("}", 1)[-1]


def png_complaint(data):
    """What is wrong with a PNG, or None. Undone row filters are not needed: in a blank picture
    every filtered row is the same, whatever the filter."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return "is not a PNG"
    position, body, height = 8, b"", 0
    while position + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[position:position + 8])
        content = data[position + 8:position + 8 + length]
        if kind == b"IHDR":
            height = struct.unpack(">II", content[:8])[1]
        elif kind == b"IDAT":
            body += content
        position += 12 + length
    try:
        pixels = zlib.decompress(body)
    except zlib.error as error:
        return f"does not decode: {error}"
    if height == 0 or len(pixels) % height != 0:
        return f"has {len(pixels)} bytes in {height} rows"
    stride = len(pixels) // height
    inked = sum(len(set(pixels[y * stride + 1:(y + 1) * stride])) > 2 for y in range(height))
    if inked < LEAST_INKED_ROWS * height:
        return f"is empty: ink in {inked} of {height} rows"
    return None


def svg_complaint(data):
    """What is wrong with an SVG, or None. gnuplot groups each curve as gnuplot_plot_N; axes and
    ticks lie outside."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        return f"is not well-formed: {error}"
    curves = [e for e in root.iter() if e.get("id", "").startswith("gnuplot_plot_")]
    drawn = [c for c in curves if sum(name(e) in MARKS for e in c.iter()) > 0]
    if not drawn or len(drawn) < len(curves):
        return f"is empty: {len(drawn)} of {len(curves)} curves are drawn"
    return None


COMPLAINTS = {".png": png_complaint, ".svg": svg_complaint}


def check(directory, lessons):
    """Complaints about the figures of these lessons."""
    wrong, count = [], 0
    for lesson in lessons:
        stems = {}
        for suffix, complaint in COMPLAINTS.items():
            files = sorted(directory.glob(f"{lesson}*{suffix}"))
            stems[suffix] = [file.stem for file in files]
            count += len(files)
            for file in files:
                problem = complaint(file.read_bytes())
                if problem:
                    wrong.append(f"{file} {problem}")
        if not stems[".png"]:
            wrong.append(f"{directory / lesson}*.png: no such figure")
        if stems[".png"] != stems[".svg"]:
            wrong.append(f"{lesson}: PNG of {stems['.png']}, but SVG of {stems['.svg']}")
    return wrong, count


def self_test():
    """Blank, cut and missing pictures must be complained about."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + b"\0\0\0\0"
    blank = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
             chunk(b"IDAT", zlib.compress(64 * (b"\0" + 64 * b"\xff\xff\xff"))))
    axes = b"<svg><path/><path/><text/></svg>"
    no_points = b"<svg><path/><g id='gnuplot_plot_1'><title>Q</title></g></svg>"
    for bad in (b"", blank, blank[:60], b"GIF89a"):
        assert png_complaint(bad), bad
    for bad in (b"", axes, no_points, b"<svg><path/>", b"<html/>"):
        assert svg_complaint(bad), bad
    with tempfile.TemporaryDirectory() as empty:
        assert check(pathlib.Path(empty), ["05"])[0]
    print("check-plots self-test: ok")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    wrong, count = check(pathlib.Path(arguments[0]), arguments[1:])
    for line in wrong:
        print(line)
    print(f"check-plots: {count} pictures of {len(arguments) - 1} lessons, {len(wrong)} failures")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
