"""Pictures a second of each edition of the embedded encoder, from files, against its raw towers.

    python -m perf.editions [PICTURES]

From files means decoding, encoding and writing into an empty cache; the raw towers have pixels in memory, and the
better of two batch sizes. By the clock, the encoder on one thread, decoding on another core.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from perf.measure import show
from perf.pictures import BAR, time_pictures, write_pictures

from caplens.core.errors import MissingData
from caplens.core.threads import VARIABLE
from caplens.encoders.embedded import EDITIONS
from caplens.encoders.load import load_encoder


def main(pictures: int = 96) -> None:
    os.environ[VARIABLE] = "1"
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pictures(Path(folder), pictures)
        for name in [name for edition in EDITIONS for name in (edition, f"{edition}-int8")]:
            try:
                encoder = load_encoder(name, device="cpu")
            except MissingData as missing:
                print(f"{name}: {missing}")
                continue
            taken = time_pictures(encoder, paths, Path(folder), (encoder.image_batch, 16))
            raw = ", ".join(f"{pictures / seconds:.2f} in batches of {batch}" for batch, seconds in taken.raw.items())
            print(f"{name}: {pictures / taken.first:.2f} pictures a second; raw towers: {raw}")
            show(f"{name}, {pictures} pictures; peer: raw", min(taken.raw.values()), taken.first, BAR)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
