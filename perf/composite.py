"""What the parts of caplens, the learned composite, cost: CPU time for pictures with five references each, text only.

    python -m perf.composite [--images 300]

Cold: nothing was embedded or parsed before; warm: everything is in the cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings

from perf.coco import captions
from perf.measure import measure

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning
from caplens.core.workspace import Workspace
from caplens.encoders.sentence import load_sentence_encoder
from caplens.metrics._well_formedness import well_formedness
from caplens.metrics.caplens_score import ENCODER, CaplensScore
from caplens.metrics.sent_sim import places
from caplens.metrics.spice import Spice


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--images", type=int, default=300)
    chosen = options.parse_args()
    warnings.simplefilter("ignore", CaplensWarning)
    groups = [texts[:5] for texts in list(captions().values())[: chosen.images + 1]]
    pairs = zip(groups[1:], groups[:-1], strict=True)
    judged = [(other[0] + " outside", own) for other, own in pairs]  # candidates that are new to the cache
    some = CaptionSet.of([candidate for candidate, _ in judged], [references for _, references in judged])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CAPLENS_CACHE"] = folder
        # Models are loaded before the clock runs.
        CaplensScore(picture=False).result(Workspace(CaptionSet.of(["a dog"], [["a dog runs"]])))
        work = Workspace(some)
        cold = {
            "sentence embeddings": measure(lambda: load_sentence_encoder(ENCODER).encode(list(places(some))))[0],
            "SPICE": measure(lambda: Spice().result(work))[0],
            "well_formedness": measure(lambda: well_formedness(work))[0],
        }
        # Embeddings and SPICE are there already: what is left is everything else, and well-formedness once more.
        rest = measure(lambda: CaplensScore(picture=False).result(work))[0]
        cold["everything else"] = max(0.0, rest - cold["well_formedness"])
        total = sum(cold.values())
        for name, seconds in cold.items():
            print(f"cold  {name:22} {1000 * seconds / len(some):7.2f} ms per picture  {seconds / total:5.1%}")
        warm = measure(lambda: CaplensScore(picture=False).result(Workspace(some)))[0]
        print(f"cold  {'all':22} {1000 * total / len(some):7.2f} ms per picture")
        print(f"warm  {'all':22} {1000 * warm / len(some):7.2f} ms per picture")


if __name__ == "__main__":
    main()
