"""Pages: every picture with its alt text, its line and its file."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from caplens.core.errors import CaplensWarning, InputError
from caplens.readers import page_images, read
from caplens.readers.html import PageImage
from caplens.vision.images import read_media

DOT = base64.b64encode(b"GIF89a dot").decode()
PAGE = f"""<!doctype html>
<title><img src="title.jpg" alt="in a title"></title>
<!-- <img src="comment.jpg" alt="in a comment"> -->
<script>document.write('<img src="script.jpg" alt="in a script">')</script>
<IMG SRC="img/cat.jpg?v=2#x" ALT="a cat &amp; a dog">
<img src=img/cat.jpg alt=unquoted><img alt='single "quotes"' src='img/a%20b.jpg'>
<img src="img/cat.jpg" alt="">
<img src="img/cat.jpg">
<img src="img/cat.jpg" alt role="presentation">
<img src="img/cat.jpg" alt="hidden" aria-hidden="true"/>
<img src="data:image/gif;base64,{DOT}" alt="inline">
<img src="data:image/gif;base64,{DOT}" data-src="img/cat.jpg" alt="lazy">
<img srcset="img/none.jpg 1x, img/cat.jpg 2x" alt="set">
<img src="https://example.org/dog.jpg" alt="elsewhere">
<img src="//example.org/dog.jpg" alt="no scheme">
<img src="/img/cat.jpg" alt="from the root">
<img src="img/none.jpg" alt="missing">
<img
  alt="two
lines" src="img/cat.jpg" alt="second alt" data-x="a > b">
<img alt="no address">
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "img").mkdir()
    for name in ("cat.jpg", "a b.jpg"):
        (tmp_path / "img" / name).write_bytes(name.encode())
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    return tmp_path


def by_alt(images: list[PageImage]) -> dict[str | None, PageImage]:
    return {image.alt: image for image in images}


def test_every_picture_with_its_place_and_file(site: Path) -> None:
    images = list(page_images(site / "page.html"))
    cat = str(site / "img/cat.jpg")
    assert [(image.line, image.alt, image.media) for image in images if isinstance(image.media, str | None)] == [
        (5, "a cat & a dog", cat),
        (6, "unquoted", cat),
        (6, 'single "quotes"', str(site / "img/a b.jpg")),
        (7, "", cat),
        (8, None, cat),
        (9, "", cat),
        (10, "hidden", cat),
        (12, "lazy", cat),
        (13, "set", cat),
        (14, "elsewhere", "https://example.org/dog.jpg"),
        (15, "no scheme", "https://example.org/dog.jpg"),
        (16, "from the root", cat),
        (17, "missing", None),
        (18, "two\nlines", cat),
        (21, "no address", None),
    ]
    assert [image.line for image in images if image.hidden] == [9, 10]
    assert {image.alt: image.problem for image in images if image.problem} == {
        "missing": "there is no such file",
        "no address": "the picture has no address",
    }
    assert images[1].id == "page.html:6:1"
    assert images[2].id == "page.html:6:35"
    inline = by_alt(images)["inline"].media
    assert inline is not None
    assert read_media(inline) == b"GIF89a dot"


def test_pages_are_captions_too(site: Path) -> None:
    with pytest.warns(CaplensWarning, match=r"without alt \(1\) and with an empty one \(2\)"):
        captions = read(site / "page.html")
    assert captions.candidates[0] == "a cat & a dog"
    assert captions.ids[0] == "page.html:5:1"
    assert "" not in captions.candidates
    assert captions.images is not None
    assert captions.images[0] == str(site / "img/cat.jpg")


def test_a_folder_of_pages(site: Path) -> None:
    (site / "sub").mkdir()
    (site / "sub" / "other.HTM").write_text('<img src="../img/cat.jpg" alt="above"><img src="cat.jpg" alt="beside">')
    images = list(page_images(site))
    assert {image.page for image in images} == {"page.html", "sub/other.HTM"}
    above, beside = images[-2:]
    assert above.media == str(site / "sub/../img/cat.jpg")
    assert above.id == "sub/other.HTM:1:1"
    assert (beside.media, beside.problem) == (None, "there is no such file")
    (alone,) = [image for image in page_images(site / "sub" / "other.HTM") if image.alt == "above"]
    assert alone.media is None
    assert "lies outside" in alone.problem
    with pytest.warns(CaplensWarning):
        assert read(site).ids[-1] == "sub/other.HTM:1:39"


def test_pictures_in_a_folder_of_their_own(site: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    pictures = tmp_path_factory.mktemp("pictures")
    (pictures / "deep").mkdir()
    (pictures / "dog.jpg").write_bytes(b"dog")
    (pictures / "deep" / "cat.jpg").write_bytes(b"cat")
    page = site / "new.html"
    page.write_text(
        '<img src="https://example.org/x/dog.jpg" alt="d"><img src="/deep/cat.jpg" alt="c"><img src="n.jpg" alt="n">'
    )
    images = list(page_images(page, images=pictures))
    assert [image.media for image in images] == [str(pictures / "dog.jpg"), str(pictures / "deep/cat.jpg"), None]
    assert images[2].problem == f"no such picture below {pictures}"
    assert read(page, images=pictures).images == [str(pictures / "dog.jpg"), str(pictures / "deep/cat.jpg"), None]
    with pytest.raises(InputError, match="there is no such folder"):
        list(page_images(page, images=site / "nowhere"))


def test_a_base_address_counts(site: Path) -> None:
    page = site / "page.html"
    page.write_text('<base href="img/"><img src="cat.jpg" alt="a">')
    assert [image.media for image in page_images(page)] == [str(site / "img/cat.jpg")]
    page.write_text('<base href="https://example.org/a/"><img src="../cat.jpg" alt="a">')
    assert [image.media for image in page_images(page)] == ["https://example.org/cat.jpg"]


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("<meta charset=iso-8859-1>", "latin-1"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252"),
        ("", "utf-8-sig"),
        ("", "utf-16"),
    ],
)
def test_the_declared_encoding_is_read(declared: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(f'{declared}<img alt="café">'.encode(encoding))
    assert [image.alt for image in page_images(tmp_path / "a.html")] == ["café"]


def test_a_page_without_alt_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<img src=x.jpg>")
    with pytest.raises(InputError, match=r"a\.html: no picture has an alt text"):
        read(tmp_path / "a.html")
