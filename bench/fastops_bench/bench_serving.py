"""A saved network for digits on one image, in each library that this environment has."""

import numpy as np
from pytest_fastops.race import Arm

from fastops_bench.common import installed

rng = np.random.default_rng(0)
SHAPES = {"w1": (64, 32), "b1": (32,), "w2": (32, 10), "b2": (10,)}
ARRAYS = {name: rng.normal(size=shape).astype(np.float32) / 8 for name, shape in SHAPES.items()}
IMAGE = rng.normal(size=(1, 64)).astype(np.float32)


def network(x, w1, b1, w2, b2, relu):
    return relu(x @ w1 + b1) @ w2 + b2


def arms(directory):
    names = {"network": network, "x": IMAGE, **ARRAYS}
    statement = "network(x, w1, b1, w2, b2, relu)"
    yield Arm("numpy", statement, names | {"relu": lambda values: np.maximum(values, 0)})
    if installed("tensorflow"):
        yield from _tensorflow_arms(str(directory / "model"))
    if installed("onnxruntime"):
        yield _onnx_arm(str(directory / "model.onnx"))
    if installed("torch"):
        import torch

        torch.set_num_threads(1)
        tensors = {name: torch.tensor(array) for name, array in (ARRAYS | {"x": IMAGE}).items()}
        yield Arm("torch", statement, names | tensors | {"relu": torch.relu})


def _tensorflow_arms(path):
    import tensorflow as tf

    import fastops

    module = tf.Module()
    module.weights = [tf.Variable(array) for array in ARRAYS.values()]

    def digits(x):
        return {"digit": network(x, *module.weights, tf.nn.relu)}

    signature = tf.function(digits, [tf.TensorSpec([None, 64], tf.float32, "x")])
    tf.saved_model.save(module, path, signatures=signature.get_concrete_function())
    loaded = tf.saved_model.load(path)
    model = fastops.graph.load(path)
    names = {"x": tf.constant(IMAGE), "loaded": loaded, "model": model}
    names["signature"] = loaded.signatures["serving_default"]
    yield Arm("signature", 'signature(x=x)["digit"]', names)
    yield Arm("fastops", 'model(x=x)["digit"]', names)


def _onnx_arm(path):
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["rectified"]),
        helper.make_node("Gemm", ["rectified", "w2", "b2"], ["digit"]),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 64])],
        [helper.make_tensor_value_info("digit", TensorProto.FLOAT, [None, 10])],
        [numpy_helper.from_array(array, name) for name, array in ARRAYS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return Arm(
        "onnxruntime", 'session.run(["digit"], x)[0]', {"session": session, "x": {"x": IMAGE}}
    )


def test_serving(race, tmp_path):
    runners = list(arms(tmp_path))
    for arm in runners[1:]:
        np.testing.assert_allclose(arm.result(), runners[0].result(), rtol=1e-3, atol=1e-6)
    race("serving", "digits network on one image", runners)
