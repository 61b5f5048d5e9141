"""The pages agree with the code: metrics, options, verbs, models, links, and the examples run."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from pathlib import Path
from urllib.parse import unquote

import pytest
from tools import docs_extras, docs_tables

import caplens
from caplens.cli import main
from caplens.metrics import find_metric, known_metrics
from caplens.metrics.option_meanings import option_meanings
from caplens.vision import fetch, images, video

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*docs_tables.pages(), *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]
SECTIONS = ("Formula", "Options", "Signature", "Agreement with people", "Cost", "License")
REFRESH = "run `python -m tools.docs_tables` (with --all for signatures and outputs)"
# Metrics whose signature depends on the code alone, so that it is the same on every machine.
WITHOUT_MODELS = ("bleu", "rouge-l", "cider", "length")

names = pytest.mark.parametrize("name", sorted({metric.name for metric in known_metrics().values()}))
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@names
def test_every_metric_has_a_page_with_every_section(name: str) -> None:
    text = docs_tables.page_of(name).read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert [section for section in SECTIONS if section not in headings] == []
    assert f"`{name}`" in text, "the page names its metric as people type it"


@names
def test_every_option_is_on_the_page_with_its_default(name: str) -> None:
    metric = find_metric(name)
    rows = docs_tables.page_of(name).read_text("utf-8")
    defaults = metric.option_defaults()
    assert defaults.keys() == metric.options()
    for option, default in defaults.items():
        shown = f"`{default!r}`".replace("'", '"')
        assert f"| `{option}` | {shown} |" in rows, REFRESH
        assert option_meanings(metric)[option]


@pages
def test_tables_say_what_the_code_says(page: Path) -> None:
    text = page.read_text("utf-8")
    opened = re.findall(r"^<!-- ([a-z]+): ?.*?-->$", text, re.M)
    kinds = {**docs_tables.QUICK, **docs_tables.SLOW}
    assert [match["kind"] for match in docs_tables.BLOCK.finditer(text)] == [kind for kind in opened if kind in kinds]
    assert docs_tables.filled(text, docs_tables.QUICK) == text, REFRESH


def test_every_verb_has_a_section() -> None:
    headings = re.findall(r"^##+ (.+)$", (DOCS / "guide" / "command-line.md").read_text("utf-8"), re.M)
    for name, command in docs_tables.verbs().items():
        assert name in headings, REFRESH
        for inner in getattr(command, "commands", ()):
            assert f"{name} {inner}" in headings, REFRESH


def test_verbs_point_to_pages_that_exist() -> None:
    assert docs_tables.VERB_PAGES.keys() <= docs_tables.verbs().keys()


def test_the_whole_public_face_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "index.md").read_text("utf-8")
    assert sorted(re.findall(r"^::: caplens\.(\w+)$", text, re.M)) == sorted(caplens.__all__)


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """Page, words and content of every block of a kind."""
    return [
        (page.relative_to(ROOT).as_posix(), match["words"], match["body"].strip())
        for page in docs_tables.pages()
        for match in docs_tables.BLOCK.finditer(page.read_text("utf-8"))
        if match["kind"] == kind
    ]


@pytest.mark.parametrize(("page", "words", "body"), blocks("signature"), ids=lambda value: str(value)[:40])
def test_signatures(page: str, words: str, body: str) -> None:
    shown = body.splitlines()[1:-1]
    wanted = words.partition(";")[0].split()
    assert [line.partition("|")[0] for line in shown] == wanted
    if all(name.startswith(WITHOUT_MODELS) for name in wanted):
        assert docs_tables.signature_block(words) == body, REFRESH


@pytest.mark.parametrize(("page", "words", "body"), blocks("run"), ids=lambda value: str(value)[:60])
def test_commands_print_what_the_page_shows(page: str, words: str, body: str) -> None:
    assert docs_tables.run_block(words) == body, REFRESH


def test_extras_are_described() -> None:
    assert docs_extras.extras().keys() == docs_extras.EXTRAS.keys()
    for page, words, body in blocks("extras"):
        for name in docs_extras.EXTRAS.keys() - set(words.split()):
            assert f"| `{name}` | {docs_extras.EXTRAS[name]} |" in body, f"{page}: {REFRESH}"


def test_every_shipped_file_has_a_card_with_a_license() -> None:
    folder = ROOT / "src" / "caplens" / "storage" / "shipped"
    shipped = {path.name for path in folder.iterdir() if path.suffix != ".md"}
    described = {name for title in docs_tables.cards() for name in title.split(", ")}
    assert described == shipped
    assert [title for title, text in docs_tables.cards().items() if "\n- License: " not in text] == []


# Links


def outside_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, as the site makes them."""
    text = re.sub(
        r'^--8<-- "(.+)"$', lambda match: (ROOT / match[1]).read_text("utf-8"), path.read_text("utf-8"), flags=re.M
    )
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    made = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        plain = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore").decode()
        made.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return made


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", outside_code(page.read_text("utf-8"))):
        if "://" in target:
            assert target.startswith("https://github.com/caplens/caplens")
            continue
        name, _, anchor = unquote(target).partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(path), f"{target}: no such heading"


def test_paths_of_pages_in_the_source_exist() -> None:
    named = re.compile(r"docs/[\w./-]+\.(?:md|svg|png)")
    missing = []
    for folder in ("src", "tests", "tools", "perf", ".github"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".cpp", ".h", ".js", ".json", ".yml"}:
                found = named.findall(path.read_text("utf-8"))
                missing += [f"{path.relative_to(ROOT)}: {name}" for name in found if not (ROOT / name).is_file()]
    assert missing == []


# Examples


def examples() -> list[object]:
    """Fenced blocks behind `<!-- runs -->`: page, language, code."""
    found: list[object] = []
    for page in docs_tables.pages():
        marked = re.findall(r"^<!-- runs -->\n```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
        where = page.relative_to(ROOT).as_posix()
        found += [pytest.param(kind, code, id=f"{where}-{number}") for number, (kind, code) in enumerate(marked)]
    return found


@pytest.mark.parametrize(("kind", "code"), examples())
@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
def test_examples_run(kind: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "python":
        exec(compile(code, "example", "exec"), {"__name__": "example"})
        return
    path = tmp_path / f"captions.{ {'json': 'jsonl', 'csv': 'csv'}[kind] }"
    path.write_text(code, "utf-8")
    with pytest.raises(SystemExit) as end:
        main(["score", str(path), "--metrics", "rouge-l"])
    assert end.value.code == 0


def test_every_guide_that_can_shows_an_example_that_runs() -> None:
    shown = {parameter.id.rsplit("-", 1)[0] for parameter in examples()}  # type: ignore[attr-defined]
    assert {"README.md", *(f"docs/guide/{name}.md" for name in ("first-report", "compare", "explain"))} <= shown


# The project's own files


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/architecture.md"])
def test_limits_are_those_of_the_code(name: str) -> None:
    text = " ".join((ROOT / name).read_text("utf-8").split())
    limits = [
        f"regular files of at most {images.MOST_BYTES // 2**20} MB",
        f"at most {images.MOST_DECODED_BYTES // 10**6} MB decoded",
        f"regular files of at most {video.MOST_BYTES // 2**30} GB",
        f"at most {video.MOST_FRAMES:,} frames",
        f"{video.MOST_SECONDS:g} seconds of decoding",
        f"at most {fetch.MOST_BYTES // 2**20} MB, {fetch.MOST_SECONDS:g} seconds over everything, "
        f"{fetch.MOST_REDIRECTS} redirects",
    ]
    assert [limit for limit in limits if limit not in text] == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 120


def test_versions_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text("utf-8")
