"""What readers are told about a caption: the details of a metric, weighed against what else is known."""

from __future__ import annotations

from caplens.core.details import Details, Missing, Region, Word

WRONG_BELOW, DOUBTED_BELOW = 0.1, 0.25
"""Where a word stands among people's words from which readers are told that it is wrong, or doubted."""


def apply_verdict_rules(details: Details) -> Details:
    """For readers: what a metric that looks at pictures says, weighed against what else is known.

    Words are judged by where they stand among people's words, if that is known, not by the metric's own limit. Where a
    word names a region and the metric doubts one of the two, neither is the whole truth. Where no word fits the
    picture, none mentions a region, however much weight the metric gives it. Where no word was judged, nobody can say
    whether they are right, whatever number the metric has.

    >>> word: Word = {"text": "dog", "status": "wrong", "regions": [0]}
    >>> apply_verdict_rules({"words": [word], "regions": [{"box": [0, 0, 1, 1]}]})["words"][0]["status"]
    'partly'
    """
    regions = details.get("regions", [])
    if not regions:
        return details
    if not any("status" in word for word in details.get("words", [])):
        unsaid: Details = {"precision": None, "overall": None}
        percentiles = {key: share for key, share in details.get("percentiles", {}).items() if key not in unsaid}
        details = {**details, **unsaid, "percentiles": percentiles}
    words: list[Word] = []
    named: set[int] = set()
    for word in map(_by_percentile, details.get("words", [])):
        named.update(word.get("regions", ()))
        if word.get("status") == "wrong" and word.get("regions"):
            word = {**word, "status": "partly", "note": "doubted, yet such a thing was found"}
        words.append(word)
    seen: list[Region] = [
        {**region, "status": "partly", "note": "named, with little weight"}
        if index in named and region.get("status") == "missing"
        else region
        for index, region in enumerate(regions)
    ]
    judged: Details = {**details, "words": words, "regions": seen}
    if _all_wrong(words):
        judged |= _nothing_mentioned(seen, details.get("missing", []))
    judged.pop("cosine", None)  # it is in the scores, and says nothing by itself
    return judged


def _all_wrong(words: list[Word]) -> bool:
    judged = [word["status"] for word in words if "status" in word]
    return bool(judged) and set(judged) == {"wrong"}


def _nothing_mentioned(regions: list[Region], missing: list[Missing]) -> Details:
    """Regions and what is left out, where no word of the caption fits."""
    seen: list[Region] = []
    left_out: dict[str, Missing] = {}
    for index, region in enumerate(regions):
        if region.get("status") == "mentioned":
            region = {**region, "status": "missing", "note": "no word of the caption fits"}
            if "label" in region:
                left_out.setdefault(region["label"], {"text": region["label"], "regions": []})["regions"].append(index)
        seen.append(region)
    return {"regions": seen, "missing": [*missing, *left_out.values()]}


def _by_percentile(word: Word) -> Word:
    if "percentile" not in word:
        return word
    lower = f"{100 * word['percentile']:.0f} % of people's words weigh less"
    if word["percentile"] < WRONG_BELOW:
        return {**word, "status": "wrong", "note": lower}
    if word["percentile"] < DOUBTED_BELOW:
        return {**word, "status": "partly", "note": f"doubted: {lower}"}
    return {**word, "status": "right"}


def wrong_words(details: Details) -> list[str]:
    """The words of the caption that are not supported, in its order."""
    return [word["text"] for word in details.get("words", []) if word.get("status") == "wrong"]


def left_out(details: Details) -> list[str]:
    """What the caption leaves out, the most important first."""
    return [item["text"] for item in details.get("missing", [])]


def wrong_sentences(details: Details) -> list[str]:
    """The sentences of a caption of several that are not supported, in its order."""
    return [sentence["text"] for sentence in details.get("sentences", []) if sentence.get("status") == "wrong"]
