"""Convert NNEval's released TensorFlow checkpoint to the npz that caplens reads; needs tensorflow.

python tools/convert_nneval_checkpoint.py nn_classify_checkpoint156.ckpt released_weights.npz
"""

from __future__ import annotations

import sys

import numpy as np


def main(checkpoint: str, target: str) -> None:
    """Write every variable of the network, slashes in its name as two underscores."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(checkpoint)
    names = [name for name in reader.get_variable_to_shape_map() if name.startswith(("hiddenlayer/", "out_layer/"))]
    wanted = [name for name in names if not name.endswith(("Adam", "Adam_1"))]
    np.savez(target, **{name.replace("/", "__"): reader.get_tensor(name) for name in wanted})
    print(f"{target}: {len(wanted)} variables")


if __name__ == "__main__":
    main(*sys.argv[1:])
