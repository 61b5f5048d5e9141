"""Files made to exhaust, hang or mislead a reader: each ends in a message that names the place and the way out."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import caplens
from caplens.bench.custom_ratings import OwnRatings
from caplens.bench.data import DataFolders
from caplens.core.captions import BinarySource
from caplens.core.errors import CaplensError, InputError
from caplens.readers import ReadLimits, page_images, read, read_references
from caplens.readers.parquet_footer import column_values

SPARSE_BYTES = 200_000_000_000

# --- bombs: read in a child that may take 600 MB more than it has after its imports ---

CHILD = """
import json, os, resource, signal, sys
import pyarrow.parquet
from caplens.readers import read
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * os.sysconf("SC_PAGE_SIZE") + 600_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
def stop(*_):
    raise TimeoutError("hangs")
signal.signal(signal.SIGALRM, stop)
answers = {}
for name in sys.argv[1:]:
    signal.alarm(60)
    try:
        read(name)
        answers[name] = "was read"
    except BaseException as error:
        answers[name] = f"{type(error).__name__}: {error}"[:2000]
    signal.alarm(0)
print(json.dumps(answers))
"""


def gzip_bomb(piece: bytes, start: bytes = b"") -> bytes:
    """A few hundred kilobytes that unpack to half a gigabyte."""
    return gzip.compress(start) + gzip.compress(piece * (10_000_000 // len(piece))) * 50


def sparse(path: Path, start: bytes = b"") -> None:
    path.write_bytes(start)
    os.truncate(path, SPARSE_BYTES)


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header with a size of our own; a negative one is written as tar writes large numbers, in two's complement."""
    member = tarfile.TarInfo(name)
    member.type = kind
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def parquet_of_one_text(path: Path, length: int, rows: int) -> None:
    """One long text that every row repeats: a dictionary with one entry, and an index that packs to nothing."""
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.array(["x" * length]).dictionary_encode()
    column = text.take(pyarrow.array([0] * rows))
    table = pyarrow.table({"id": pyarrow.array(range(rows)), "caption": column})
    pyarrow.parquet.write_table(table, path, compression="zstd")


def parquet_of_one_row(path: Path, references: int) -> None:
    """One row with a list of the same reference, again and again."""
    import pyarrow
    import pyarrow.parquet

    texts = pyarrow.array(["a dog"]).dictionary_encode().take(pyarrow.nulls(references, pyarrow.int32()).fill_null(0))
    column = pyarrow.ListArray.from_arrays(pyarrow.array([0, references], pyarrow.int32()), texts)
    table = pyarrow.table({"id": ["a"], "caption": ["a dog"], "references": column})
    pyarrow.parquet.write_table(table, path, compression="zstd")


BOMBS: dict[str, tuple[Callable[[Path], object], str]] = {
    "line.jsonl.gz": (
        lambda path: path.write_bytes(gzip_bomb(b"x")),
        "line 1: the line is too long|far more than its size .*expansion",
    ),
    "lines.jsonl.gz": (
        lambda path: path.write_bytes(gzip_bomb(b" " * 9999 + b"\n")),
        "far more than its size .*expansion",
    ),
    "cell.csv.gz": (
        lambda path: path.write_bytes(gzip_bomb(b"x" * 999 + b"\n", b'id,caption\n1,"')),
        "too long .*field_bytes|far more than its size .*expansion",
    ),
    "spaces.json.gz": (lambda path: path.write_bytes(gzip_bomb(b" ", b"[")), "far more than its size .*expansion"),
    "text.json.gz": (
        lambda path: path.write_bytes(gzip_bomb(b"x", b'{"a": "')),
        "one value is too long .*field_bytes|expansion",
    ),
    "packed.parquet.gz": (
        lambda path: path.write_bytes(gzip_bomb(b"x", b"PAR1")),
        "far more than its size .*expansion",
    ),
    "zero.jsonl": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "zero.csv": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "zero.parquet": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "zero.tar": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "zero.html": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "sparse.jsonl": (sparse, "line 1: the line is too long .*field_bytes"),
    "sparse.csv": (sparse, "line 1: the line is too long .*field_bytes"),
    "sparse.json": (sparse, "line 1, column 1: not json"),
    "spaced.json": (lambda path: sparse(path, b'[{"id": 1, "caption": "a'), "not json|too long"),
    "sparse.html": (sparse, "the file is too long .*field_bytes"),
    "sparse.parquet": (sparse, "not parquet"),
    "dictionary.parquet": (
        lambda path: parquet_of_one_text(path, 1_000_000, 4096),
        "far more than its size .*expansion",
    ),
    "list.parquet": (lambda path: parquet_of_one_row(path, 20_000_000), "far more than its size .*expansion"),
    "backwards.tar": (
        lambda path: path.write_bytes(tar_header("a.jpg", 0) + tar_header("b.jpg", -512) + bytes(1024)),
        "archive is damaged",
    ),
    "attributes.tar": (
        lambda path: sparse(path, tar_header("x", SPARSE_BYTES // 2, tarfile.XHDTYPE)),
        "a header asks for .* bytes .*field_bytes",
    ),
    "name.tar": (
        lambda path: sparse(path, tar_header("x", SPARSE_BYTES // 2, tarfile.GNUTYPE_LONGNAME)),
        "a header asks for .* bytes .*field_bytes",
    ),
    "member.tar": (lambda path: sparse(path, tar_header("a.txt", SPARSE_BYTES // 2)), "'a.txt': the text is too long"),
    "nested.tar": (
        lambda path: path.write_bytes(tar_header("x", 0, tarfile.XHDTYPE) * 5000 + bytes(1024)),
        "archive is damaged|not a plain tar",
    ),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a child process with little memory says about each bomb."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("bombs")
    for name, (build, _) in BOMBS.items():
        build(folder / name)
    paths = {str(folder / name): name for name in BOMBS}
    source = str(Path(caplens.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return {paths[path]: answer for path, answer in json.loads(child.stdout).items()}


@pytest.mark.skipif(sys.platform != "linux", reason="the child's memory is limited as Linux does it")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_memory(name: str, answers: dict[str, str]) -> None:
    assert answers[name].startswith("InputError: "), answers[name]
    assert name in answers[name]
    assert re.search(BOMBS[name][1], answers[name]), answers[name]


# --- limits ---


def test_limits_come_from_the_environment_or_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {number}, "caption": "a"}}\n' for number in range(20)))
    assert len(read(path)) == 20
    with pytest.raises(InputError, match=r"too many rows \(the limit rows is 10\).*CAPLENS_READ_LIMITS=rows=100"):
        read(path, limits=ReadLimits(rows=10))
    monkeypatch.setenv("CAPLENS_READ_LIMITS", "rows=10")
    with pytest.raises(InputError, match="the limit rows is 10"):
        read(path)
    with pytest.raises(InputError, match="the limit rows is 10"):
        read_references(path)
    assert len(read(path, limits=ReadLimits())) == 20


@pytest.mark.parametrize("text", ["rows=0", "rows=-1", "rows", "lines=3", "rows=1.5", "depth=K", "rows=" + "9" * 5000])
def test_a_limit_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_READ_LIMITS", text)
    with pytest.raises(InputError, match="limit"):
        ReadLimits.from_environment()


LIMITED = [
    ("a.json", b'[{"id": 1, "caption": "a"}, {"id": 2, "caption": "b"}]', {"rows": 1}, "rows"),
    ("a.json", b'{"1": "a", "2": "b"}', {"rows": 1}, "rows"),
    ("a.json", b'{"1": "' + b"a" * 2_000_000 + b'"}', {"field_bytes": 1_000_000}, "field_bytes"),
    ("a.csv", b"id,caption\n1,a\n2,b\n", {"rows": 2}, "rows"),
    ("a.csv", b'id,caption\n1,"' + b"a\n" * 2000 + b'"\n', {"field_bytes": 1000}, "field_bytes"),
    ("a.jsonl", b'{"id": 1, "caption": "aaaaaaaaaaaa"}', {"total_bytes": 20}, "total_bytes"),
    ("a.jsonl", b'{"id": 1, "caption": "a", "more": [[[[]]]]}', {"depth": 4}, "depth"),
    ("a.json", b'[{"id": 1, "caption": "a", "more": [[[[]]]]}]', {"depth": 4}, "depth"),
    ("p.html", b'<img alt="a"><img alt="b">', {"rows": 1}, "rows"),
    ("p.html", b'<img alt="a">', {"field_bytes": 5}, "field_bytes"),
    ("t.tar", tar_of([(tarfile.TarInfo(f"{key}.txt"), b"a") for key in "ab"]), {"rows": 1}, "rows"),
    ("t.tar", tar_of([(tarfile.TarInfo("a.txt"), b"a" * 2000)]), {"field_bytes": 1000}, "field_bytes"),
]


@pytest.mark.parametrize(("name", "content", "limits", "limit"), LIMITED)
def test_every_layout_keeps_to_the_limits(
    name: str, content: bytes, limits: dict[str, int], limit: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    read(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}.*the limit {limit} is {limits[limit]:,}"):
        read(tmp_path / name, limits=ReadLimits(**limits))


def test_parquet_keeps_to_the_limits(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    parquet_of_one_text(path, 2000, 300)
    assert len(read(path)) == 300
    for limits in (ReadLimits(rows=299), ReadLimits(field_bytes=1999), ReadLimits(total_bytes=599_999)):
        with pytest.raises(InputError, match=r"a\.parquet.*the limit (rows|field_bytes|total_bytes) is"):
            read(path, limits=limits)


# --- what is not a file ---


def test_a_named_pipe_does_not_hang_and_is_read_on_purpose(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    started = time.monotonic()
    with pytest.raises(InputError, match=r"pipe\.jsonl: is a named pipe, not a regular file; .*standard input"):
        read(pipe)
    assert time.monotonic() - started < 5
    writer = threading.Thread(target=pipe.write_text, args=('{"id": 1, "caption": "a dog"}\n',), daemon=True)
    writer.start()
    assert read(pipe, pipes=True).candidates == ["a dog"]
    writer.join()


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": 1, "caption": "a dog"}\n{"id": 2, "caption": ""}\n',
        b'[{"id": 1, "caption": "a dog"}, {"id": 2, "caption": ""}]',
        b'{"1": "a dog", "2": ""}\n',
        b'{\n"1": "a dog",\n"2": ""}\n',
        b"id;caption\n1;a dog\n2;\n",
        gzip.compress(b"id,caption\n1,a dog\n2,\n"),
    ],
)
def test_a_descriptor_is_read_whatever_it_holds(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "captions").write_bytes(content)
    with (tmp_path / "captions").open("rb") as opened:
        assert read(f"/dev/fd/{opened.fileno()}").candidates == ["a dog", ""]


def test_standard_input_is_read_and_may_be_endless(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "caplens", "score", "-", "-m", "length", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(caplens.__file__).parents[1])}
    run = subprocess.run(command, input=b"id,caption\n1,a dog\n", capture_output=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["metrics"]["length"]["scores"] == [2.0]
    with open("/dev/zero", "rb") as zero:
        run = subprocess.run(command, stdin=zero, capture_output=True, env=environment, timeout=60, check=False)
    assert run.returncode == 2
    assert b"standard input, line 1: the line is too long" in run.stderr


# --- json that misleads ---

DEEP = "[" * 50_000
MISLEADING = [
    ("deep.json", DEEP, "nested too deeply"),
    ("deep.json", '{"1": ' + '{"a":' * 50_000, "nested too deeply"),
    ("deep.jsonl", f'{{"id": 1, "caption": {DEEP}', "row 1: .*nested too deeply"),
    ("deep.csv", f"id,caption,references\n1,a,{DEEP}\n", r"row 1 \(line 2\): .*nested too deeply"),
    ("shown.jsonl", '{"id": 1, "caption": {"a": ' + "[" * 90 + "]" * 90 + "}}", "must be a string, not an object"),
    ("digits.jsonl", f'{{"id": {"1" * 5000}, "caption": "a"}}', "row 1: a number has thousands of digits"),
    ("digits.json", f'[\n{{"id": {"1" * 5000}, "caption": "a"}}]', "line 2: a number has thousands of digits"),
    ("long.jsonl", json.dumps({"id": "x" * 1_000_000, "caption": 7}), "id 'x{59}…': the caption must be a string"),
    ("twice.jsonl", '{"id": 1, "caption": "a", "caption": "b"}', "row 1: the key 'caption' stands twice"),
    ("twice.json", '[{"id": 1,\n"caption": "a", "caption": "b"}]', "line 1: the key 'caption' stands twice"),
    ("twice.json", '{"a": "b",\n "a": "c"}', "line 2: the key 'a' stands twice"),
    ("inner.json", '{"a": {"caption": "a", "caption": "b"}}', "the key 'caption' stands twice"),
    ("header.csv", "id,caption,id\n1,a,2\n", "line 1: the column 'id' stands twice .columns 1 and 3."),
    ("latin.jsonl", b'{"id": 1, "caption": "a"}\n{"id": 2, "caption": "caf\xe9"}', "line 2: byte 0xe9 is not UTF-8"),
    ("latin.json", b'{"1": "a",\n"2": "caf\xe9"}', "line 2: byte 0xe9 is not UTF-8"),
    ("latin.html", b'<p>\n<img alt="caf\xe9">', "line 2: byte 0xe9 is not UTF-8"),
    ("blank.csv", b"\xef\xbb\xbf\n", "the file is empty"),  # a byte order mark and nothing else
    ("wide.csv", "id,caption\n1,a\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8; .*UTF-16"),
]


@pytest.mark.parametrize(("name", "content", "message"), MISLEADING)
def test_what_misleads_is_refused_by_its_place(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=rf"{name}.*{message}") as refusal:
        read(tmp_path / name)
    assert len(str(refusal.value)) < 1000


def test_repeated_columns_and_members_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [pyarrow.array(["a"]), pyarrow.array(["b"])]
    parquet.write_table(pyarrow.Table.from_arrays(columns, ["caption", "caption"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: the column 'caption' stands twice"):
        read(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the DataFrame: the column 'caption' stands twice"):
        read(pandas.DataFrame([["a", "b"]], columns=["caption", "caption"]))
    (tmp_path / "a.tar").write_bytes(tar_of([(tarfile.TarInfo(name), b"x") for name in ("1.txt", "1.caption")]))
    with pytest.raises(InputError, match=r"a\.tar, member '1\.caption': the caption of this sample stands twice"):
        read(tmp_path / "a.tar")


def parquet_table(kind: str) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"id": ["1", "2"], "caption": ["a", "b"]}
    nested = {"references": [["a", "b"], ["c"]], "image": [{"bytes": b"x", "path": "x.jpg"}, None]}
    return pyarrow.table(columns | nested if kind == "lists" else columns)


@pytest.mark.parametrize("kind", ["texts", "lists"])
def test_a_parquet_file_whose_statistics_are_damaged_ends_no_process(kind: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(parquet_table(kind), path)
    footer = int.from_bytes(path.read_bytes()[-8:-4], "little") + 8
    code = (
        "import sys\nfrom pathlib import Path\nfrom caplens.core.errors import CaplensError\n"
        "from caplens.readers import read\npath = Path(sys.argv[1])\nsound = path.read_bytes()\n"
        "for place in range(len(sound) - int(sys.argv[2]), len(sound)):\n"
        "  for flip in (1, 2, 4, 16, 64):\n"
        "    data = bytearray(sound)\n    data[place] ^= flip\n    path.write_bytes(data)\n"
        "    try:\n      read(path)\n    except CaplensError:\n      pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path), str(footer)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


def test_values_of_parquet_columns_are_those_that_pyarrow_counts(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    for options in ({}, {"row_group_size": 1, "write_page_index": True}, {"use_dictionary": False}):
        parquet.write_table(parquet_table("lists"), path, **options)
        metadata = parquet.read_metadata(path)
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        expected = [[group.column(place).num_values for place in range(metadata.num_columns)] for group in groups]
        assert column_values(str(path), metadata, "a.parquet") == expected


def test_a_damaged_picture_in_a_parquet_file_is_a_message(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(parquet_table("lists"), path, compression="none", use_dictionary=False)
    images = read(path).images
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"\x01\0\0\0x", b"\xff\xff\0\0x"))  # the picture's length
    assert images is not None
    assert isinstance(images[0], BinarySource)
    with pytest.raises(InputError, match=r"a\.parquet, row 1.*not parquet"):
        images[0].open()


# --- pages ---


@pytest.mark.parametrize(
    "piece", ["<a ", "<img alt=", "<img alt='", "<!--", "<![CDATA[", '<a b="c" ', "<", "</", "<script>", "&#"]
)
def test_a_page_of_unclosed_tags_takes_no_time(piece: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img alt="a dog">' + piece * 300_000)
    started = time.monotonic()
    assert next(page_images(page)).alt == "a dog"
    assert len(list(page_images(page))) >= 1
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "address",
    ["../secret.jpg", "/../secret.jpg", "%2e%2e/secret.jpg", "link.jpg", "file:///etc/passwd", "x\0.jpg", "a" * 5000],
)
def test_a_page_shows_no_file_outside_its_folder(address: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (tmp_path / "site" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (tmp_path / "site" / "page.html").write_text(f'<img alt="a" src="{address}">')
    (image,) = page_images(tmp_path / "site" / "page.html")
    assert image.media is None
    assert image.problem
    (image,) = page_images(tmp_path / "site" / "page.html", images=tmp_path / "site")
    assert image.media is None


# --- ratings ---


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,rating\na,nan\n", r"row 1 \(line 2\), id 'a': the rating is 'nan', which cannot be ranked"),
        (b"id,rating\na,1\na,inf\n", r"row 2 \(line 3\), id 'a': the rating is 'inf'"),
        (b"id,rating\na,1e999\n", "id 'a': the rating is '1e999'"),
        (b"id,rating\na,\n", "id 'a': the rating is no number: ''"),
        (b"id,rating,rating\na,1,2\n", "the column 'rating' stands twice"),
        (b"id,rating,note\na,1,caf\xe9\n", "line 2: byte 0xe9 is not UTF-8"),
        (b"id,rating\na,1,2\n", r"row 1 \(line 2\): 3 cells for 2 columns"),
        (b'id,rating\na,"1\n', "row 1: not csv"),
        (b"", "the file is empty"),
    ],
)
def test_ratings_that_cannot_be_ranked_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    captions, ratings = tmp_path / "captions.json", tmp_path / "ratings.csv"
    captions.write_text('{"a": "a dog"}')
    ratings.write_bytes(content)
    with pytest.raises(InputError, match=rf"ratings\.csv.*{message}"):
        OwnRatings(ratings, [captions]).load(DataFolders([]))


# --- damage ---

ROWS = [{"id": str(number), "caption": f"a dog {number} é", "references": ["x", "y|z"]} for number in range(3)]
SEEDS = {
    "a.jsonl": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "a.json": json.dumps(ROWS).encode(),
    "coco.json": b'{"info": {}, "images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": "a"}]}',
    "a.csv": b'id,caption,references\n1,"a, ""b""","[""x"", ""y""]"\n2,b,c|d\n',
    "a.tar": tar_of([(tarfile.TarInfo(f"1.{suffix}"), b"a") for suffix in ("jpg", "txt")]),
    "a.html": b'<!-- x --><base href="/a/"><img src="x.jpg" alt="a &amp; b"><style><img></style><img srcset="a 1x">',
    "a.jsonl.gz": gzip.compress(json.dumps(ROWS[0]).encode(), mtime=0),
}
PIECES = [b"[", b"{", b'"', b",", b"\\ud800", b"null", b"NaN", b"\0", b"\xff", b"\n", b"\r", b"|", b"<!--", b"9" * 5000]


@pytest.mark.filterwarnings("ignore::caplens.core.errors.CaplensWarning")
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    path = tmp_path / name
    read_whole = 0
    for _ in range(150):
        data = bytearray(SEEDS[name])
        for _ in range(draw.choice([1, 2, 8])):
            position = draw.randrange(len(data))
            if draw.random() < 0.5:
                data[position] = draw.randrange(256)
            else:
                data[position:position] = draw.choice(PIECES)
        path.write_bytes(data)
        # Anything but a CaplensError goes through and fails the test.
        with contextlib.suppress(CaplensError):
            read(path)
            read_whole += 1
    assert read_whole < 150
