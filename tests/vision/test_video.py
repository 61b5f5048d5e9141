"""Videos made here with PyAV: sampling, streaming, and what is broken."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.vision.video import Sampling, frames

av = pytest.importorskip("av")


def write_video(path: Path, count: int, size: tuple[int, int] = (64, 48)) -> Path:
    """A grey video whose n-th frame is 10 · n bright."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.options = {"qscale": "1"}
        for number in range(count):
            picture = Image.new("RGB", size, (10 * number % 256,) * 3)
            container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode())
    return path


def brightness(path: Path | io.BytesIO, sampling: str) -> list[int]:
    return [round(float(np.asarray(frame).mean()) / 10) for frame in frames(path, Sampling.parse(sampling))]


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("videos") / "twelve.mp4", 12)


def test_sampling(video: Path) -> None:
    assert brightness(video, "all") == list(range(12))
    assert brightness(video, "every-5") == [0, 5, 10]
    assert brightness(video, "uniform-4") == np.linspace(0, 11, 4).astype(int).tolist()
    assert brightness(video, "uniform-40") == list(range(12))
    assert brightness(video, "uniform-1") == [0]


def test_frames_come_one_at_a_time(video: Path) -> None:
    stream = frames(video, Sampling.parse("all"))
    assert next(stream).size == (64, 48)
    stream.close()  # leaves no open file behind; a leak would be an error in this test run


def test_a_video_inside_an_archive(video: Path) -> None:
    class Member:
        name = "twelve.mp4"

        def open(self) -> io.BytesIO:
            return io.BytesIO(video.read_bytes())

    assert len(list(frames(Member(), Sampling.parse("uniform-3")))) == 3


def test_a_video_that_breaks_off_is_seen_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "whole.ts", 12).read_bytes()
    broken = tmp_path / "broken.ts"
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    assert 1 <= len(list(frames(broken, Sampling.parse("all")))) <= 12


@pytest.mark.parametrize("sampling", ["all", "uniform-4"])
@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (b"no video at all" * 20, "cannot be decoded"), (None, "no such file")]
)
def test_a_useless_video_says_why(tmp_path: Path, sampling: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / "video.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        list(frames(path, Sampling.parse(sampling)))


def test_a_folder_a_url_and_sound(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        list(frames(tmp_path, Sampling()))
    with pytest.raises(InputError, match="allow_urls"):
        list(frames("https://example.org/film.mp4", Sampling()))
    sound = tmp_path / "sound.wav"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        frame.rate = 8000
        container.mux(stream.encode(frame))
    with pytest.raises(InputError, match="no video stream"):
        list(frames(sound, Sampling()))


def test_a_playlist_reaches_no_network(tmp_path: Path) -> None:
    playlist = tmp_path / "list.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nhttp://127.0.0.1:9/part.ts\n#EXT-X-ENDLIST\n")
    with pytest.raises(InputError):
        list(frames(playlist, Sampling()))


@pytest.mark.parametrize("text", ["", "every-0", "uniform", "uniform-", "all-3", "10"])
def test_a_misspelt_sampling_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="every-K"):
        Sampling.parse(text)
