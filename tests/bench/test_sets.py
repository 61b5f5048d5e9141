"""Every loader on a tiny sample, written here in the layout that people have."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from caplens.bench.base import Task, find_sets, known_sets
from caplens.bench.data import DataFolders
from caplens.bench.sets import retrieval
from caplens.bench.sets.captokeneval import overlap
from caplens.bench.sets.distraction import person_phrase, scene_phrase
from caplens.bench.statistics import PairStatistic, RatingStatistic, Scored, Trial
from caplens.core.details import AnyDetails
from caplens.core.errors import InputError, MissingData
from caplens.metrics import load_metric

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def load(name: str, folder: Path) -> Task:
    return known_sets()[name].load(DataFolders([folder]))


def with_scores(*trials: list[float], details: list[AnyDetails] | None = None) -> Scored:
    """A metric that gave these scores."""
    made = [Trial(np.array(scores), np.array(scores).reshape(-1, 1), "toy", details=details) for scores in trials]
    return Scored(load_metric("length"), made)


def value(task: Task, key: str, scored: Scored) -> float:
    figure = next(figure for figure in task.figures if figure.key == key)
    return float(figure.resampled(scored, np.ones((1, task.units), dtype=np.int32))[0])


TOKENS = "\n".join(
    [
        "one.jpg#0\tA dog runs .",
        "one.jpg#1\tThe dog is fast .",
        "two.jpg#0\tA cat sleeps .",
        "two.jpg#1\tTwo cats .",
    ]
)


def test_expert_text_files_drop_verbatim_references_and_keep_three_rows(tmp_path: Path, write: Write) -> None:
    write("text/Flickr8k.token.txt", TOKENS)
    write("text/ExpertAnnotations.txt", "one.jpg\ttwo.jpg#0\t1\t1\t2\none.jpg\tone.jpg#1\t4\t4\t4\n")
    task = load("flickr8k-expert", tmp_path)
    captions = task.trials[0]
    assert captions.candidates == ["A cat sleeps ."] * 3
    assert captions.references == [["A dog runs .", "The dog is fast ."]] * 3
    assert isinstance(task.figures[0], RatingStatistic)
    assert task.figures[0].ratings.tolist() == [1, 1, 2]


def test_expert_json_form_finds_pictures_by_name(tmp_path: Path, write: Write) -> None:
    judgment = {"image_path": "images/one.jpg", "caption": "a cat", "rating": 2.0}
    write("deep/flickr8k.json", {"one": {"ground_truth": ["a dog"], "human_judgement": [judgment, judgment]}})
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (2, 2)).save(tmp_path / "photos" / "one.jpg")
    task = load("flickr8k-expert", tmp_path)
    assert task.trials[0].images == [tmp_path / "photos" / "one.jpg"] * 2
    assert task.units == 1


def test_crowd_references_lose_every_candidate_for_all_rows_of_the_photo(tmp_path: Path, write: Write) -> None:
    write("Flickr8k.token.txt", TOKENS)
    write("CrowdFlowerAnnotations.txt", "one.jpg\tone.jpg#1\t1\t3\t0\none.jpg\ttwo.jpg#1\t0.25\t1\t3\n")
    task = load("flickr8k-cf", tmp_path)
    assert task.trials[0].references == [["A dog runs ."]] * 2
    assert isinstance(task.figures[0], RatingStatistic)
    assert task.figures[0].key == "tau-b"
    assert task.figures[0].ratings.tolist() == [1.0, 0.25]


def test_a_rating_of_an_unknown_caption_names_file_and_caption(tmp_path: Path, write: Write) -> None:
    write("Flickr8k.token.txt", TOKENS)
    write("ExpertAnnotations.txt", "one.jpg\tnine.jpg#0\t1\t1\t2\n")
    with pytest.raises(InputError, match=r"ExpertAnnotations.*nine\.jpg#0"):
        load("flickr8k-expert", tmp_path)


def test_composite_json_removes_the_numbered_reference(tmp_path: Path, write: Write) -> None:
    rows = [
        {"dataset": "coco", "image": "val/a.jpg", "caption": caption, "human": rating, "human_candidate_ref": 1,
         "references": ["x y", "a b", "c"]}
        for caption, rating in (("a b", 5), ("other", 1), ("third", 2))
    ]  # fmt: skip
    write("composite.json", rows)
    task = load("composite", tmp_path)
    assert task.trials[0].references == [["x y", "c"]] * 3
    assert [figure.key for figure in task.figures] == ["tau-c", "tau-b", "pearson", "spearman", "tau-c coco"]


def test_composite_in_fleurs_form_needs_references(tmp_path: Path, write: Write) -> None:
    write("composite.json", {"coco": [{"image": "a.jpg", "caption": "a", "human": 3}]})
    with pytest.raises(InputError, match="references"):
        load("composite", tmp_path)


def test_composite_csv_files_as_distributed(tmp_path: Path, write: Write) -> None:
    header = (
        "HITId;Input.image_url;Input.text1;Input.text2;Input.text3;Answer.Q1Answer;Answer.Q2Answer;Answer.Q3Answer\n"
    )
    end = ";;;;;;;\n;;;;;;;\n"
    write("AMT_eval/8k_correctness.csv", header + "1;http://x/one.jpg;a dog runs;machine;other;5;2;1\n" + end)
    write("AMT_eval/30k_correctness.csv", header + "1;http://x/9.jpg;t;u;v;3;2;1\n" + end)
    write("AMT_eval/coco_correctness.csv", header + "1;http://x/COCO_1.jpg;t;u;v;3;2;1\n" + end)
    write("Flickr8k.token.txt", TOKENS)
    write("results_20130124.token", "9.jpg#0\tnine\n9.jpg#1\tneuf\n")
    annotations = [{"image_id": 7, "caption": "one  cow"}, {"image_id": 7, "caption": "two"}]
    write("captions_val2014.json", {"images": [{"id": 7, "file_name": "COCO_1.jpg"}], "annotations": annotations})
    task = load("composite", tmp_path)
    assert len(task.trials[0]) == 9
    assert task.trials[0].references is not None
    assert task.trials[0].references[:3] == [["The dog is fast ."]] * 3  # the human candidate was "A dog runs ."
    assert task.trials[0].references[6] == ["one cow", "two"]


def pascal_pair(category: str, image: str, votes: list[int], label: int) -> dict[str, Any]:
    return {
        "image": image, "category": category, "caption_a": "right", "caption_b": "wrong", "pair_votes": votes,
        "consensus_label": label,
    }  # fmt: skip


def test_pascal_families_are_two_sets_and_never_mixed(tmp_path: Path, write: Write) -> None:
    pairs = [pascal_pair("HC", "a.jpg", [1, 1, -1], 1), pascal_pair("MM", "b.jpg", [-1, -1], 1)]
    references = {name: [f"reference {number}" for number in range(50)] for name in ("a.jpg", "b.jpg")}
    path = tmp_path / "pascal50s.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"pairs": pairs, "references": references}).encode()))
    first_always_better = with_scores(*[[2.0, 1.0, 2.0, 1.0]] * 5)
    consensus, direct = load("pascal-50s-consensus", tmp_path), load("pascal-50s-pairs", tmp_path)
    assert value(consensus, "HC", first_always_better) == 0
    assert value(direct, "HC", first_always_better) == 1
    assert value(direct, "mean", first_always_better) == 0.5
    assert len(consensus.trials) == 5
    assert consensus.trials[0].references is not None
    assert [len(texts) for texts in consensus.trials[0].references] == [5] * 4
    assert consensus.trials[0].references[0] == consensus.trials[0].references[1]
    assert consensus.trials[0].references != consensus.trials[1].references
    assert "seed:1" in consensus.signature
    assert "ties:half" in consensus.signature


def test_pascal_in_fleurs_form_has_one_family_only(tmp_path: Path, write: Write) -> None:
    pair = {"image": "a.jpg", "captions": ["x", "y"], "label": 1, "references": ["r"] * 5}
    write("pascal_50s.json", {"HC": [pair]})
    assert value(load("pascal-50s-consensus", tmp_path), "HC", with_scores(*[[1.0, 2.0]] * 5)) == 1
    with pytest.raises(MissingData, match="direct pair votes"):
        load("pascal-50s-pairs", tmp_path)


def write_pascal_mat(folder: Path) -> None:
    """Structs as the original files have them; every other triplet shows the captions the other way round."""
    pairs = np.zeros((1, 1), dtype=[(name, object) for name in ("image", "first", "second")])
    pairs[0, 0] = ("a.jpg", "right one", "wrong one")
    savemat(folder / "pair_pascal.mat", {"new_input": pairs, "category": np.array([[3]])})
    triplets = np.zeros((1, 48), dtype=[(name, object) for name in ("a", "b", "c", "winner")])
    for place in range(48):
        shown = ("right one", "wrong one", 1.0) if place % 2 else ("wrong one", "right one", -1.0)
        texts = [np.array([[text]], dtype=object) for text in (f"reference {place}", *shown[:2])]
        triplets[0, place] = (*texts, shown[2])
    savemat(folder / "consensus_pascal.mat", {"triplets": triplets})


def test_pascal_original_matlab_files_follow_swapped_triplets(tmp_path: Path) -> None:
    write_pascal_mat(tmp_path)
    task = load("pascal-50s-consensus", tmp_path)
    assert task.trials[0].candidates == ["right one", "wrong one"]
    assert value(task, "HM", with_scores(*[[2.0, 1.0]] * 5)) == 1
    curve = load("curve-pascal-50s", tmp_path)
    assert "labels:votes-of-the-references-used" in curve.signature
    assert value(curve, "all, 1 reference", with_scores(*[[2.0, 1.0]] * 48)) == 1


def abstract_entry(votes: list[int]) -> dict[str, Any]:
    references = [f"reference {number}" for number in range(len(votes))]
    return {"image": "s.png", "caption_b": "b", "caption_c": "c", "references": references, "votes": votes}


def test_abstract_label_is_the_majority_of_the_votes(tmp_path: Path, write: Write) -> None:
    write("abstract50s.json", [abstract_entry([-1] * 30 + [1] * 18)])
    task = load("abstract-50s", tmp_path)
    assert value(task, "accuracy", with_scores(*[[1.0, 2.0]] * 5)) == 1
    assert value(task, "accuracy", with_scores(*[[1.0, 1.0]] * 5)) == 0.5


def test_curve_leaves_out_tied_votes_and_counts_tied_scores_as_wrong(tmp_path: Path, write: Write) -> None:
    write("abstract50s.json", [abstract_entry([1, -1] * 24), abstract_entry([1] * 48)])
    task = load("curve-abstract-50s", tmp_path)
    last = next(figure for figure in task.figures if figure.at == 48)
    assert last.count == 1
    assert value(task, last.key, with_scores(*[[1.0, 1.0, 1.0, 1.0]] * 48)) == 0
    assert task.trials[6].references is not None
    assert [len(texts) for texts in task.trials[6].references] == [7] * 4
    # Nested: one more reference each time.
    assert task.trials[6].references[0][:3] == task.trials[2].references[0]  # type: ignore[index]


def test_foil_original_file_pairs_by_id_and_drops_the_caption_itself_from_the_references(
    tmp_path: Path, write: Write
) -> None:
    annotations = [
        {"foil": False, "id": 5, "image_id": 9, "caption": "A dog on a bed."},
        {"foil": True, "id": 5, "image_id": 9, "caption": "A cat on a bed."},
        {"foil": True, "id": 6, "image_id": 9, "caption": "no partner"},
    ]
    write("foilv1.0_test_2017.json", {"annotations": annotations, "images": []})
    captions = [
        {"image_id": 9, "caption": text} for text in ("A dog on a bed", "The dog sleeps.", "Dog.", "x", "y", "z")
    ]
    images = [{"id": 9, "file_name": "COCO_val2014_000000000009.jpg"}]
    write("captions_val2014.json", {"images": images, "annotations": captions})
    task = load("foil", tmp_path)
    assert task.trials[0].candidates == ["A dog on a bed.", "A cat on a bed."]
    assert [len(texts) for texts in task.trials[0].references or []] == [1, 1]
    assert task.trials[1].references == [["The dog sleeps.", "Dog.", "x", "y"]] * 2
    assert "source:foilv1.0" in task.signature
    assert value(task, "accuracy, 4 references", with_scores([1.0, 2.0], [3.0, 2.0])) == 1


def test_foil_in_valses_form_says_that_it_is_another_selection(tmp_path: Path, write: Write) -> None:
    write("valse_foil_it.json", {"1": {"image_file": "p.jpg", "caption": "a dog", "foil": "a cat"}})
    write("coco_captions.json", {"p.jpg": {"split": "test", "captions": ["a dog .", "some dog"]}})
    task = load("foil", tmp_path)
    assert task.trials[1].references == [["some dog"]] * 2
    assert task.notes


def test_thumb_with_and_without_human_captions(tmp_path: Path, write: Write) -> None:
    rows = [
        {"SYS": name, "seg_id": "7", "hyp": "x", "image": "p.jpg", "P": place, "R": 5 - place, "human_score": place}
        for place, name in enumerate(("Up-Down", "VinVL", "Human"))
    ]
    write("mscoco_THumB-1.0.jsonl", "\n".join(map(json.dumps, rows)))
    write("mscoco_references.json", json.dumps({"seg_id": "7", "refs": ["a", "b", "c", "d"]}))
    task = load("thumb", tmp_path)
    counts = {figure.key: figure.count for figure in task.figures}
    assert counts["pearson total, without human"] == 2
    assert counts["pearson total, with human"] == 3
    assert value(task, "pearson recall, with human", with_scores([0.0, 1.0, 2.0])) == pytest.approx(-1)


def vatex(folder: Path) -> None:
    content = {
        "candidates_list": np.array(["a", "b", "c", "d"]),
        "gts_list": np.array([[f"r{row}{number}" for number in range(10)] for row in range(4)]),
        "human_scores": np.array([1.0, 2, 3, 4, 1, 2, 3, 4, 4, 3, 2, 1]),
        "video_ids": np.array(["v1", "v1", "v2", "v2"]),
    }
    for name, array in content.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(array))


def test_vatex_is_the_mean_over_three_annotators(tmp_path: Path) -> None:
    vatex(tmp_path)
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "v1.mp4").write_bytes(b"")
    task = load("vatex-eval", tmp_path)
    assert [len(texts) for texts in task.trials[1].references or []] == [9] * 4
    assert task.trials[0].videos == [tmp_path / "videos" / "v1.mp4"] * 2 + [None, None]
    scored = with_scores([1.0, 2, 3, 4], [1.0, 2, 3, 4])
    assert value(task, "tau-b, 1 reference", scored) == pytest.approx(1 / 3)
    assert value(task, "spearman, 9 references", scored) == pytest.approx(1 / 3)


class Attack:
    def __reduce__(self) -> tuple[Any, ...]:
        return (eval, ("1 + 1",))


def test_vatex_pickles_that_would_run_code_are_refused(tmp_path: Path) -> None:
    vatex(tmp_path)
    (tmp_path / "video_ids.pkl").write_bytes(pickle.dumps(Attack()))
    with pytest.raises(InputError, match="eval"):
        load("vatex-eval", tmp_path)


def test_activitynet_foil_compares_the_means_of_paragraphs(tmp_path: Path, write: Write) -> None:
    def results(*texts: str) -> dict[str, Any]:
        return {"results": {"v": [{"sentence": text} for text in texts]}}

    write("final_right_video_sentences.json", results("a man runs", "he stops"))
    write("final_foil_video_sentences.json", results("a man flies", "he stops"))
    write(
        "anet_entities_test_1.json", {"v": {"timestamps": [[0, 10], [20, 30]], "duration": 30, "sentences": ["", ""]}}
    )
    second = {"timestamps": [[1, 9], [40, 50]], "duration": 60, "sentences": ["someone runs", "the end"]}
    write("anet_entities_test_2.json", {"v": second})
    task = load("activitynet-foil", tmp_path)
    assert task.trials[0].references == [["someone runs"], ["someone runs", "the end"]] * 2
    assert value(task, "accuracy", with_scores([3.0, 0.0, 1.0, 1.0])) == 1


def test_captokeneval_judges_words_and_regions_from_details(tmp_path: Path, write: Write) -> None:
    row = {
        "image": "p.jpg",
        "caption": "a dog flies",
        "words": [{"word": "dog", "correct": True}, {"word": "flies", "correct": False}],
        "regions": [{"box": [0, 0, 0.5, 0.5], "mentioned": True}, {"box": [0.5, 0.5, 1, 1], "mentioned": False}],
    }
    write("captokeneval.json", [row])
    task = load("captokeneval", tmp_path)
    assert task.details
    details: list[AnyDetails] = [
        {
            "words": [{"text": "a"}, {"text": "dog", "status": "right"}, {"text": "flies", "status": "right"}],
            "regions": [{"box": [0, 0, 0.5, 0.4], "status": "mentioned"}],
        }
    ]
    scored = with_scores([0.0], details=details)
    assert value(task, "word accuracy", scored) == 0.5
    assert value(task, "region accuracy", scored) == 1
    assert overlap([0, 0, 1, 1], [2, 2, 3, 3]) == 0


def retrieval_photos(folder: Path, names: list[str]) -> None:
    (folder / "photos").mkdir()
    for name in names:
        Image.new("RGB", (2, 2)).save(folder / "photos" / name)


def test_nocaps_retrieval_counts_ties_against_the_metric(tmp_path: Path, write: Write) -> None:
    names = ["a.jpg", "b.jpg", "c.jpg"]
    images = [{"id": place, "file_name": name} for place, name in enumerate(names)]
    annotations = [{"image_id": place, "caption": name[0]} for place, name in enumerate(names)]
    write("nocaps_val_4500_captions.json", {"images": images, "annotations": annotations})
    retrieval_photos(tmp_path, names)
    task = load("retrieval-nocaps", tmp_path)
    assert len(task.trials[0]) == 9
    # Photo a finds its text, b ties with a wrong one, c is beaten by another.
    table = [3.0, 0, 0, 1, 1, 0, 0, 2, 1]
    assert value(task, "image to text, R@1", with_scores(table)) == pytest.approx(1 / 3)
    assert value(task, "image to text, R@5", with_scores(table)) == 1
    assert value(task, "text to image, R@1", with_scores(table)) == pytest.approx(2 / 3)


def test_retrieval_over_the_whole_split_takes_every_caption_in_pieces(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "PAIRS_PER_TRIAL", 6)
    captions = {"a.jpg": ["a", "aa"], "b.jpg": ["b"]}
    write("flickr8k_captions.json", {name: {"split": "test", "captions": own} for name, own in captions.items()})
    retrieval_photos(tmp_path, list(captions))
    assert len(load("retrieval-flickr8k-whole", tmp_path).trials) == 1
    monkeypatch.setattr(retrieval, "PAIRS_PER_TRIAL", 5)
    task = load("retrieval-flickr8k-whole", tmp_path)
    assert [[Path(str(path)).name for path in trial.images or []] for trial in task.trials] == [
        ["a.jpg"] * 3,
        ["b.jpg"] * 3,
    ]
    # Photo a finds "aa" before "b"; photo b ties with "a". "a" fits b better, the two others find their photo.
    scored = with_scores([1.0, 4, 3], [2, 0, 2])
    assert value(task, "image to text, R@1", scored) == 0.5
    scored = with_scores([1.0, 4, 1], [2, 0, 2])
    assert value(task, "text to image, R@1", scored) == pytest.approx(2 / 3)
    lost = with_scores([1.0, 4, 1], [np.nan] * 3)
    assert value(task, "image to text, R@1", lost) == 1


def test_flickr_retrieval_without_photos_says_so(tmp_path: Path, write: Write) -> None:
    write("flickr8k_captions.json", {"a.jpg": {"split": "test", "captions": ["a"]}})
    with pytest.raises(MissingData, match="photos"):
        load("retrieval-flickr8k", tmp_path)


def test_distraction_makes_all_six_tasks_against_the_other_captions(tmp_path: Path, write: Write) -> None:
    people = ["A young man", "Two women", "The boy", "A young man"]
    places = ["a park", "the street", "a green field", "a park"]
    captions = {
        f"{number}.jpg": {"split": "test", "captions": [f"{person} number {number} walks in {place} .", "Somebody ."]}
        for number, (person, place) in enumerate(zip(people, places, strict=True))
    }
    write("flickr30k_captions.json", captions)
    task = load("distraction", tmp_path)
    trial = task.trials[0]
    assert {figure.key for figure in task.figures} == {
        "mean", "replace person", "replace scene", "share person", "share scene", "just person", "just scene",
    }  # fmt: skip
    wrong = trial.candidates[1::2]
    assert "A young man" in wrong
    assert "a green field" in wrong
    assert all(right != other for right, other in zip(trial.candidates[::2], wrong, strict=True))
    assert trial.references is not None
    assert all(references == ["Somebody ."] for references in trial.references)
    assert load("distraction", tmp_path).trials[0].candidates == trial.candidates


def test_person_and_scene_phrases() -> None:
    assert person_phrase("Dogs are running .") is None
    assert person_phrase("The old lady , smiling").text == "The old lady"  # type: ignore[union-attr]
    assert scene_phrase("A dog runs") is None
    assert scene_phrase("Men stand on a city street.").head == "street"  # type: ignore[union-attr]


def test_pracegover_scores_five_hundred_at_a_time_and_ties_are_wrong(tmp_path: Path, write: Write) -> None:
    triplets = {str(number): ["ref", "right", "wrong", 1] for number in range(501)}
    write("pracegover_triplets.json", {"HCI": triplets, "HII": triplets})
    task = load("pracegover", tmp_path)
    assert [len(trial) for trial in task.trials] == [1000, 2, 1000, 2]
    assert task.notes
    scored = with_scores([1.0, 0.0] * 500, [1.0, 1.0], [0.0, 1.0] * 500, [1.0, 0.0])
    assert value(task, "HCI", scored) == pytest.approx(500 / 501)
    assert value(task, "HII", scored) == pytest.approx(1 / 501)


def test_coco_systems_need_every_test_photo_and_people_lose_their_own_reference(tmp_path: Path, write: Write) -> None:
    sentences = [{"raw": text} for text in ("one", "two", "three")]
    images = [
        {"filename": name, "split": split, "sentences": sentences}
        for name, split in (("a.jpg", "test"), ("b.jpg", "test"), ("c.jpg", "train"))
    ]
    write("dataset_coco.json", {"images": images})
    rows = [("full", "a.jpg"), ("full", "b.jpg"), ("half", "a.jpg")]
    lines = [json.dumps({"system": system, "image": image, "caption": "text"}) for system, image in rows]
    write("coco_systems.jsonl", "\n".join(lines))
    task = load("coco-systems", tmp_path)
    assert [trial.source for trial in task.trials] == ["Humans", "full"]
    human = task.trials[0]
    assert human.references is not None
    for candidate, references in zip(human.candidates, human.references, strict=True):
        assert sorted([candidate, *references]) == ["one", "three", "two"]
    assert value(task, "full", with_scores([0.0, 0.0], [1.0, 3.0])) == 2


@pytest.mark.parametrize("name", known_sets())
def test_a_missing_file_is_named_with_where_to_get_it(name: str, tmp_path: Path) -> None:
    rating_set = known_sets()[name]
    with pytest.raises(MissingData) as caught:
        load(name, tmp_path)
    assert rating_set.files[0][0] in str(caught.value)
    assert rating_set.home in str(caught.value)
    assert rating_set.found(DataFolders([tmp_path])) == []


def test_names_are_found_without_hyphens_and_unknown_ones_refused() -> None:
    assert [found.name for found in find_sets(["Flickr8k_Expert", "pascal50s"])] == [
        "flickr8k-expert", "pascal-50s-consensus", "pascal-50s-pairs",
    ]  # fmt: skip
    with pytest.raises(InputError, match="flickr8k-cf"):
        find_sets(["flickr9k"])


def test_pair_figures_average_over_draws() -> None:
    figure = PairStatistic(
        key="x", better=np.array([0]), worse=np.array([1]), units=np.zeros(1, dtype=np.int32), trials=(0, 1)
    )
    scored = with_scores([1.0, 0.0], [0.0, 1.0])
    assert figure.items(scored).tolist() == [0.5]
    assert figure.per_trial(scored) == [1.0, 0.0]
