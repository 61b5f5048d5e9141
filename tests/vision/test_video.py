"""Videos made here with PyAV: sampling, streaming, and what is broken."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caplens.core.errors import InputError
from caplens.vision import video as module
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


def brightness(path: Path, sampling: str) -> list[int]:
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
    sound = tmp_path / "sound.mkv"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        frame.rate = 8000
        container.mux(stream.encode(frame))
    with pytest.raises(InputError, match="no video stream"):
        list(frames(sound, Sampling()))


PLAYLISTS = {
    "m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n",
    "live m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{target}\n",
    "ffconcat": "ffconcat version 1.0\nfile {target}\n",
    "dash": (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period><AdaptationSet>'
        '<Representation id="1"><BaseURL>{target}</BaseURL></Representation></AdaptationSet></Period></MPD>'
    ),
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\n",
}


@pytest.mark.parametrize("sampling", ["all", "uniform-2"])
@pytest.mark.parametrize("name", ["list.m3u8", "film.mp4", "film.mpd"])
@pytest.mark.parametrize("kind", PLAYLISTS)
def test_what_names_other_files_is_never_opened(
    tmp_path: Path, video: Path, kind: str, name: str, sampling: str
) -> None:
    (tmp_path / "twelve.ts").write_bytes(write_video(tmp_path / "made.ts", 12).read_bytes())
    path = tmp_path / name
    for target in ("twelve.ts", str(video), "http://127.0.0.1:9/part.ts"):
        path.write_text(PLAYLISTS[kind].format(target=target))
        with pytest.raises(InputError, match=r"known format|cannot be decoded"):
            list(frames(path, Sampling.parse(sampling)))


def test_a_playlist_in_memory_is_not_opened_either(video: Path) -> None:
    class Member:
        name = "list.m3u8"

        def open(self) -> io.BytesIO:
            return io.BytesIO(PLAYLISTS["m3u8"].format(target=video).encode())

    with pytest.raises(InputError, match=r"known format|cannot be decoded"):
        list(frames(Member(), Sampling()))


@pytest.mark.timeout(20)
def test_a_fifo_is_refused_and_so_is_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "film.mp4")
    (tmp_path / "link.mp4").symlink_to(tmp_path / "film.mp4")
    for path in (tmp_path / "film.mp4", tmp_path / "link.mp4", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            list(frames(path, Sampling()))


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi", "mov", "mpg", "ts", "m4v", "3gp", "flv", "nut"])
def test_what_people_have_is_still_read(tmp_path: Path, suffix: str) -> None:
    with av.open(str(tmp_path / f"film.{suffix}"), "w") as film:
        stream = film.add_stream({"mpg": "mpeg2video", "flv": "flv1"}.get(suffix, "mpeg4"), rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(6):
            film.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 48), "red"))))
        film.mux(stream.encode())
    assert len(list(frames(tmp_path / f"film.{suffix}", Sampling()))) >= 5


def test_too_many_frames_are_refused_before_one_is_decoded(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FRAMES", 5)
    converted: list[object] = []
    monkeypatch.setattr(module, "_check_size", lambda *size: converted.append(size))
    for sampling in ("all", "every-2", "uniform-6"):
        with pytest.raises(InputError, match="more than 5 frames to look at"):
            next(frames(video, Sampling.parse(sampling)))
    assert converted == []
    for sampling, count in (("every-3", 4), ("uniform-5", 5)):
        assert len(list(frames(video, Sampling.parse(sampling)))) == count


def test_twenty_thousand_tiny_frames_are_too_many(tmp_path: Path) -> None:
    path = tmp_path / "tiny.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("rawvideo", rate=100)
        stream.width, stream.height, stream.pix_fmt = 2, 2, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((2, 2, 3), np.uint8), format="rgb24").reformat(format="yuv420p")
        for number in range(20_000):
            frame.pts = number
            container.mux(stream.encode(frame))
    with pytest.raises(InputError, match="more than 18,000 frames"):
        list(frames(path, Sampling()))


def test_decoding_has_a_deadline_and_the_encoder_none(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def passed(seconds: float) -> float:
        clock[0] += seconds
        return clock[0]

    monkeypatch.setattr(module, "monotonic", lambda: passed(0))
    shown = 0
    for _ in frames(video, Sampling()):
        passed(module.MOST_SECONDS)  # what the caller does meanwhile
        shown += 1
    assert shown == 12
    monkeypatch.setattr(module, "monotonic", lambda: passed(40))  # counting and decoding, 40 seconds for each frame
    with pytest.raises(InputError, match="took longer than 600 seconds to decode"):
        list(frames(video, Sampling()))


def test_reading_that_takes_too_long_is_given_up(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SECONDS", 1e-9)
    with pytest.raises(InputError, match="took longer than"):
        list(frames(video, Sampling()))


def test_huge_frames_are_refused(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FRAME_PIXELS", 1000)
    with pytest.raises(InputError, match="has frames of 64 × 48 pixels"):
        list(frames(video, Sampling()))


def test_a_film_that_grows_is_seen_as_far_as_it_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large is not even decoded: three megabytes of JPEG would take two gigabytes."""
    monkeypatch.setattr(module, "MOST_FRAME_PIXELS", 5000)
    film = tmp_path / "grows.mjpeg"
    with film.open("wb") as stream:
        for size in [(64, 48)] * 3 + [(640, 480)]:
            Image.new("L", size, 7).save(stream, "JPEG")
    assert [frame.size for frame in frames(film, Sampling())] == [(64, 48)] * 3


@pytest.mark.parametrize("text", ["", "every-0", "uniform", "uniform-", "all-3", "10"])
def test_a_misspelt_sampling_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="every-K"):
        Sampling.parse(text)
