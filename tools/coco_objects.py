"""Write `src/caplens/text/coco_objects.txt`: COCO's 80 names, each with the words of WordNet that mean it.

    python -m tools.coco_objects

A word belongs to a name if its most frequent sense is the name's sense or a kind of it. Where WordNet's most frequent
sense is not the one that COCO means, `SENSES` says which is; `EVERYDAY` has words that captions use otherwise than
WordNet thinks, and wins. Both were written down before any caption was scored.
"""

from __future__ import annotations

from pathlib import Path

from caplens.storage import weights
from caplens.text.wordnet import PARTS, WORDNET, WordNet

TARGET = Path(__file__).parents[1] / "src" / "caplens" / "text" / "coco_objects.txt"
NAMES = """
person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella, handbag,
tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard, surfboard,
tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange, broccoli, carrot,
hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop, mouse, remote, keyboard,
cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors, teddy bear, hair drier,
toothbrush
""".replace("\n", " ").strip()
SENSES: dict[str, tuple[tuple[str, int], ...]] = {
    "banana": (("banana", 2),),
    "boat": (("boat", 1), ("ship", 1)),
    "book": (("book", 1), ("book", 2)),
    "broccoli": (("broccoli", 2),),
    "cake": (("cake", 3),),
    "cell phone": (("cellular telephone", 1),),
    "cow": (("cow", 1), ("cattle", 1)),
    "hot dog": (("hot dog", 2), ("hot dog", 3)),
    "keyboard": (("computer keyboard", 1),),
    "kite": (("kite", 3),),
    "microwave": (("microwave", 2),),
    "mouse": (("mouse", 4),),
    "potted plant": (("houseplant", 1),),
    "skis": (("ski", 1),),
    "sports ball": (("ball", 1),),
    "toaster": (("toaster", 2),),
    "toilet": (("toilet", 2),),
    "tv": (("tv", 2),),
    "wine glass": (("wineglass", 1),),
}
EVERYDAY = {
    "person": "people, folk, folks, crowd, adult, male, female, human, skater, snowboarder, skateboarder",
    "bicycle": "bike",
    "car": "convertible, suv",
    "airplane": "jet",
    "traffic light": "stoplight, stop light",
    "bird": "chicken, chick, duckling",
    "cat": "kitten, kitty",
    "dog": "puppy",
    "horse": "foal, colt",
    "sheep": "lamb, ewe, ram",
    "cow": "calf",
    "fire hydrant": "hydrant",
    "handbag": "purse",
    "suitcase": "luggage",
    "sports ball": "ball",
    "baseball bat": "bat",
    "baseball glove": "mitt",
    "tennis racket": "racket, racquet, tennis racquet",
    "potted plant": "pot plant, potted flower",
    "dining table": "table, kitchen table, coffee table, desk",
    "tv": "television, television set, monitor, flat screen",
    "laptop": "computer, laptop computer, notebook computer, macbook",
    "cell phone": "phone, smartphone, mobile phone, telephone, iphone",
    "skis": "ski",
    "toilet": "urinal",
    "oven": "stove, stovetop",
    "refrigerator": "fridge",
    "donut": "doughnut",
    "hair drier": "hair dryer",
    "cup": "mug",
}
# Words whose most frequent sense captions hardly ever mean.
LEFT_OUT = frozenset({"commuter", "go-ahead", "lounge", "lower", "settle"})


def main() -> None:
    """Write the table, sorted, so that a second run gives the same file."""
    folder = weights.require(WORDNET)
    net = WordNet(folder)
    lines, index = net._noun_lines, net._index["noun"]

    names = [name.strip() for name in NAMES.split(",")]
    owner = {word.strip(): name for name, words in EVERYDAY.items() for word in words.split(",")}
    owner |= {name: name for name in names}

    def sense(word: str, number: int) -> int | None:
        fields = index.get(word.replace(" ", "_"), "").split()
        return int(fields[-int(fields[2]) :][number - 1]) * len(PARTS) if fields else None

    roots = {sense(*chosen): name for name in names for chosen in SENSES.get(name, ((name, 1),))}
    for entry in index:
        word = entry.replace("_", " ")
        first = net.first(word)
        if word in owner or word in LEFT_OUT or net.has(word, "adj"):  # an adjective says little about things
            continue
        if first is None or not entry.replace("_", "").replace("-", "").isalpha():
            continue
        if "@i" in lines[first // len(PARTS)].partition("|")[0].split():  # the name of one person or ship
            continue
        owners = {roots[kind] for kind in net.kinds(word) if kind in roots}
        if len(owners) == 1:
            owner[word] = owners.pop()
    for form, bases in net._irregular["noun"].items():
        of = {owner[base] for base in bases if base in owner}
        if len(of) == 1:
            owner.setdefault(form.replace("_", " "), of.pop())
    words_of = {name: sorted(word for word, of in owner.items() if of == name and word != name) for name in names}
    license = (folder / "LICENSE").read_text("utf-8").splitlines()  # it asks to stand on every copy
    head = [f"# {line}".rstrip() for line in ("Names of COCO's objects, by tools/coco_objects.py, from:", *license)]
    table = [", ".join([name, *words_of[name]]) for name in names]
    TARGET.write_text("\n".join([*head, *table]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
