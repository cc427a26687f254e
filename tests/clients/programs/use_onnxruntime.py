# SPDX-License-Identifier: Apache-2.0
"""A model of ONNX Runtime, run with ever larger batches until memory ends; what its arena took is what its own log says."""
import json
import os
import re
import tempfile

import numpy
import onnxruntime
from onnx import TensorProto, helper

WIDTH = 1024
GREW = re.compile(r"Extending BFCArena for Cuda\..*\n.*Extended allocation by (\d+) bytes")


def model():
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", WIDTH]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def fill(session):
    batch = 1024
    while True:
        print(session.run(None, {"x": numpy.ones((batch, WIDTH), numpy.float32)})[0].shape)  # HERE
        batch *= 2


def main():
    session = onnxruntime.InferenceSession(model(), providers=["CUDAExecutionProvider"])
    print(session.get_providers())
    try:
        fill(session)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
        print("Failed to allocate memory" in str(error))


def log_of(function):
    """What is written to stderr meanwhile."""
    stderr = os.dup(2)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 2)
        try:
            function()
        finally:
            os.dup2(stderr, 2)
        file.seek(0)
        return file.read()


onnxruntime.set_default_logger_severity(1)
print(json.dumps({"held": sum(map(int, GREW.findall(log_of(main))))}))
