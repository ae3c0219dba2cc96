"""Run by the tests in a process of its own: exported files with nothing but numpy, onnxruntime and torch."""

import sys

sys.modules["gymnast"] = None  # importing it is an error
sys.modules["gymnasium"] = None

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402

for number in range(int(sys.argv[1])):
    inputs = dict(np.load(f"{number}.npz"))
    one = {name: array[:1] for name, array in inputs.items()}
    session = onnxruntime.InferenceSession(f"{number}.onnx")
    names = [output.name for output in session.get_outputs()]
    np.savez(f"{number}.onnx.npz", **dict(zip(names, session.run(None, inputs))))
    np.savez(f"{number}.onnx.one.npz", **dict(zip(names, session.run(None, one))))

    program = torch.export.load(f"{number}.pt2").module()

    def call(arrays, program=program):
        """The observation (a dict of its parts when there are several), then the mask."""
        values = {name: torch.from_numpy(array) for name, array in arrays.items()}
        mask = [values.pop("mask")] if "mask" in values else []
        obs = values["obs"] if list(values) == ["obs"] else values
        return {name: output.detach().numpy() for name, output in program(obs, *mask).items()}

    np.savez(f"{number}.torch.npz", **call(inputs))
    np.savez(f"{number}.torch.one.npz", **call(one))
