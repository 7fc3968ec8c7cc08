"""picture.py FILE.svg FILE.png LABEL... - is the picture what it should be?

The words of the SVG are compared with the labels; nothing may leave the frame,
no words may overlap others, and they stand in the middle of their boxes.  The pixels of the PNG, which is what a viewer
makes of the SVG, are then looked at: there is ink where words are, boxes have
their colours, the margin is empty.  A PNG of "-" is not looked at.  Prints what
is wrong, or "good".
"""
import itertools
import struct
import sys
import xml.etree.ElementTree as tree
import zlib

NS = "{http://www.w3.org/2000/svg}"
CELL_X, CELL_Y, MARGIN, GRID = 8, 16, 12, "#dddddd"
wrong = []


def number(element, name):
    return float(element.get(name, "0"))


def overlap(a, b):
    return (a[0] + 1 < b[2] and b[0] + 1 < a[2]
            and a[1] + 1 < b[3] and b[1] + 1 < a[3])


def inside(box, frame):
    return (box[0] >= frame[0] and box[1] >= frame[1]
            and box[2] <= frame[2] and box[3] <= frame[3])


class Picture:
    def __init__(self, path):
        root = tree.parse(path).getroot()
        self.size = int(number(root, "width")), int(number(root, "height"))
        self.words, self.rects, self.lines, self.grid = [], [], [], []
        for text in root.iter(NS + "text"):
            x, y = number(text, "x"), number(text, "y")
            half = len(text.text) * CELL_X / 2
            self.words.append((text.text,
                               (x - half, y - 12, x + half, y + 3.5)))
        for rect in root.findall(NS + "rect"):
            x, y = number(rect, "x"), number(rect, "y")
            self.rects.append((rect.get("class"), rect.get("fill"),
                               (x, y, x + number(rect, "width"),
                                y + number(rect, "height"))))
        for line in root.findall(NS + "line"):
            x1, y1, x2, y2 = (number(line, n) for n in ("x1", "y1", "x2", "y2"))
            self.lines.append((min(x1, x2), min(y1, y2), max(x1, x2),
                               max(y1, y2)))
            if line.get("stroke") == GRID:
                self.grid.append(y1)

    def check(self, labels):
        frame = (MARGIN, MARGIN, self.size[0] - MARGIN, self.size[1] - MARGIN)
        said = "\n".join(text for text, _ in self.words)
        for label in labels:
            if label not in said:
                wrong.append("no label %r" % label)
        for text, box in self.words:
            if not inside(box, frame):
                wrong.append("%r leaves the frame" % text)
        for kind, _, box in self.rects:
            if kind != "ground" and not inside(box, frame):
                wrong.append("a box leaves the frame: %s" % (box,))
        for box in self.lines:
            if not inside(box, frame):
                wrong.append("a line leaves the frame: %s" % (box,))
        self.check_places()
        for i, (text, box) in enumerate(self.words):
            for other, other_box in self.words[:i]:
                if overlap(box, other_box):
                    wrong.append("%r overlaps %r" % (text, other))


    def check_places(self):
        """Words are in the middle of their box, and at their grid line."""
        levels = [(box[1] + box[3]) / 2 - 0.25 for _, box in self.words]
        for i, (kind, _, box) in enumerate(self.rects):
            if kind != "box" or any(k == "box" and inside(b, box)
                                    for k, _, b in self.rects[i + 1:]):
                continue
            held = [level for level, (_, words) in zip(levels, self.words)
                    if inside(words, box)]
            middle = sum(held) / len(held) if held else 0
            if held and abs(middle - (box[1] + box[3]) / 2) > 1:
                wrong.append("words at %g in %s" % (middle, box))
        for y in self.grid:
            if not any(abs(level - y) < 1 for level in levels):
                wrong.append("no words at the grid line %g" % y)


class Pixels:
    """A PNG of 8 bits a channel, as rows of (red, green, blue)."""

    def __init__(self, path):
        data, at, packed = open(path, "rb").read(), 8, b""
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colour = \
                    struct.unpack(">IIBB", body[:10])
            if kind == b"IDAT":
                packed += body
            at += length + 12
        assert depth == 8 and colour in (2, 6)
        self.step = 3 if colour == 2 else 4
        self.rows = self.unfilter(zlib.decompress(packed))

    def unfilter(self, raw):
        stride, rows = self.width * self.step, []
        before = bytes(stride)
        for y in range(self.height):
            kind = raw[y * (stride + 1)]
            row = raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)]
            before = self.unfilter_row(kind, row, before)
            rows.append(before)
        return rows

    def unfilter_row(self, kind, row, before):
        step = self.step
        if kind == 0:
            return row
        if kind in (2, 4) and not any(row):
            return before
        if kind == 2:
            return bytes((a + b) & 255 for a, b in zip(row, before))
        out = bytearray(step) + row
        up = bytes(step) + before
        if kind == 1:
            for c in range(step):
                out[step + c::step] = bytes(
                    v & 255 for v in itertools.accumulate(row[c::step]))
        for i in range(step, len(out) if kind > 2 else 0):
            guess = ((out[i - step] + up[i]) // 2 if kind == 3 else
                     self.paeth(out[i - step], up[i], up[i - step]))
            out[i] = (out[i] + guess) & 255
        return bytes(out[step:])

    @staticmethod
    def paeth(left, up, corner):
        a, b, c = abs(up - corner), abs(left - corner), \
            abs(left + up - 2 * corner)
        return left if a <= b and a <= c else up if b <= c else corner

    def at(self, x, y):
        return tuple(self.rows[int(y)][int(x) * self.step:][:3])

    def dark(self, box):
        return sum(sum(self.at(x, y)) < 3 * 140
                   for y in range(int(box[1]), int(box[3]))
                   for x in range(int(box[0]), int(box[2])))

    def check(self, picture):
        if (self.width, self.height) != picture.size:
            wrong.append("the PNG has another size")
            return
        for text, box in picture.words:
            if self.dark(box) < 2 * len(text.replace(" ", "")):
                wrong.append("no ink at %r" % text)
        for i, (kind, fill, box) in enumerate(picture.rects):
            corner = (box[0] + 3, box[1] + 3)
            covered = any(b[0] <= corner[0] <= b[2] and
                          b[1] <= corner[1] <= b[3]
                          for _, _, b in picture.rects[i + 1:])
            if fill.startswith("#") and not covered:
                want = tuple(int(fill[k:k + 2], 16) for k in (1, 3, 5))
                if max(abs(a - b) for a, b in zip(want,
                                                  self.at(*corner))) > 8:
                    wrong.append("%s at %s is not %s" % (kind, corner, fill))
        width, height = picture.size
        for edge in ((0, 0, width, 8), (0, height - 8, width, height),
                     (0, 0, 8, height), (width - 8, 0, width, height)):
            if self.dark(edge):
                wrong.append("ink in the margin")


def main():
    svg, png, labels = sys.argv[1], sys.argv[2], sys.argv[3:]
    picture = Picture(svg)
    picture.check(labels)
    if png != "-":
        Pixels(png).check(picture)
    print("; ".join(wrong[:5]) or "good")


main()
