"""Runs the network of iris.safetensors, in plain Python.

Every sum is taken in the order in which it was taken in training, so the scores
are the expected ones to the last bit.
"""

import json
import os
import struct


def load(path):
    """Returns the values of every tensor of a safetensors file of float32."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            start, end = t["data_offsets"]
            tensors[name] = struct.unpack("<%df" % ((end - start) // 4), data[start:end])
    return tensors


def softsign(a):
    return a / (1 + abs(a))


def dense(weight, bias, x):
    out = []
    for i, total in enumerate(bias):
        for j, v in enumerate(x):
            total += weight[i * len(x) + j] * v
        out.append(total)
    return out


class Model:
    def __init__(self):
        t = load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "iris.safetensors"))
        self.mean, self.std = t["input.mean"], t["input.std"]
        self.hidden = t["hidden.weight"], t["hidden.bias"]
        self.output = t["output.weight"], t["output.bias"]

    def scores(self, flower):
        z = [(x - m) / s for x, m, s in zip(flower, self.mean, self.std)]
        return dense(*self.output, [softsign(a) for a in dense(*self.hidden, z)])

    def infer_with_tensors(self, tensors):
        import numpy  # what the runner hands over is numpy's

        scores = [self.scores(flower) for flower in tensors["flowers"].tolist()]
        return {"scores": numpy.array(scores, dtype=numpy.float32)}


def get_model():
    return Model()
