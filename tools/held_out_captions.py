"""Caption every training picture by a captioner that has not seen it: two are trained, each on one half.

    python tools/held_out_captions.py --images DIR --captions FILE --features DIR --output DIR [--encoder NAME]

Writes captions.jsonl, a picture and its caption a line, for `caplens train pac-s --new-captions`.
Stopped and started again it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from caplens.captioning.captioner import FeatureSpec
from caplens.encoders.load import load_encoder
from caplens.storage.atomic import write_atomically
from caplens.training.captioner import CaptionerConfig, Pictures, evaluate_captioner, fit, grid_features
from caplens.training.pairs import read_pairs

CONFIG = CaptionerConfig(
    width=128, heads=4, refining_layers=1, cross_entropy_epochs=6, learning_rate=2e-3, self_critical_epochs=0, batch=16
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("images", "captions", "features", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--encoder", default="embedded")
    options = parser.parse_args()
    pairs = read_pairs(options.captions)
    encoder = load_encoder(options.encoder, keep=options.features)
    names = [*pairs.train, *pairs.val, *pairs.test]
    grids = grid_features(encoder, CONFIG.grid, options.images, names, options.features)
    every = list(pairs.train.values())
    val = slice(len(every), len(every) + len(pairs.val))
    said: dict[str, str] = {}
    for half in (0, 1):
        folder = options.output / f"half-{half}"
        if not (folder / "captions.json").exists():
            learned, other = slice(half, len(every), 2), slice(1 - half, len(every), 2)
            pictures = Pictures(names[: len(every)][learned], grids[: len(every)][learned], every[learned])
            spec = FeatureSpec(options.encoder, encoder.grid_identity, CONFIG.grid)
            captioner = fit(pictures, CONFIG, spec, folder)
            captions = captioner.caption(grids[: len(every)][other])
            made = dict(zip(names[: len(every)][other], captions, strict=True))
            write_atomically(folder / "captions.json", json.dumps(made))
            held_out = Pictures(names[val], grids[val], list(pairs.val.values()))
            print(half, evaluate_captioner(captioner, held_out), flush=True)
        said |= json.loads((folder / "captions.json").read_text())
    lines = [json.dumps({"key": name, "caption": said[name]}, ensure_ascii=False) for name in pairs.train]
    write_atomically(options.output / "captions.jsonl", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
