"""A whole set is decoded as its images are one by one, and a record says how far torchcodec's
pixels are off."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from study.base.errors import StudyError
from study.config.settings import Settings
from study.data.decode import decode
from study.training.loops.decoding import begin, by_torchcodec, decoder_of
from study.training.loops.torch import loop as torch_loop
from tests.conftest import write_photos
from tests.unit.data.test_data import TURNED
from tests.unit.training.test_loops import make_job, tiny_run

CPU = torch.device("cpu")


def settings_of(**loader: str) -> Settings:
    return Settings.model_validate(
        {"device": "cpu", "dataset": {"image_size": 32}, "loader": {"kind": "device"} | loader}
    )


def smooth(folder: Path, name: str, mode: str = "RGB", **options: Any) -> Path:
    """A picture without noise, which every decoder of JPEG files shows alike."""
    across, down = np.meshgrid(np.linspace(0, 255, 90), np.linspace(0, 255, 60))
    image = Image.fromarray(
        np.stack([across, down, 255 - across], axis=-1).astype(np.uint8)
    ).convert(mode)
    image.save(folder / name, **options)
    return folder / name


def test_a_set_is_decoded_by_many_processes_as_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.training.loops.decoding.usable_cpus", lambda: 3)
    monkeypatch.setattr("study.training.loops.decoding.LEAST_BYTES", 1)
    files = sorted(write_photos(tmp_path / "photos", {"a": 40, "b": 13}).rglob("*.jpg"))
    found = begin(files, settings_of(), CPU)()
    assert torch.equal(found, torch.from_numpy(np.stack([decode(file, 3, 32) for file in files])))
    files[33].write_bytes(files[33].read_bytes()[:300])
    with pytest.raises(StudyError, match=r"^033\.jpg: cannot be decoded"):
        begin(files, settings_of(), CPU)()


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "L"}, {"subsampling": 2}, {"progressive": True}, {"exif": TURNED}],
    ids=["plain", "grey", "subsampled", "progressive", "turned"],
)
def test_torchcodec_decodes_a_jpeg_file_as_pillow_does(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    pytest.importorskip("torchcodec")
    file = smooth(tmp_path, "a.jpg", **options)
    for channels in (1, 3):
        wanted, found = decode(file, channels, 32).astype(int), by_torchcodec(file, channels, 32)
        assert found.shape == (channels, 32, 32)
        assert np.abs(found - wanted).max() <= 2


def test_what_is_no_plain_jpeg_file_is_pillows(tmp_path: Path) -> None:
    for file in (
        smooth(tmp_path, "a.png"),
        smooth(tmp_path, "b.jpg", "CMYK"),
        smooth(tmp_path, "c.webp"),
    ):
        assert np.array_equal(by_torchcodec(file, 3, 32), decode(file, 3, 32))
    stored = np.full((50, 40, 3), 7, np.uint8)
    assert np.array_equal(by_torchcodec(stored, 3, 32), decode(stored, 3, 32))


def test_a_damaged_jpeg_file_is_named_whoever_decodes_it(tmp_path: Path) -> None:
    pytest.importorskip("torchcodec")
    file = smooth(tmp_path, "a.jpg")
    file.write_bytes(file.read_bytes()[:400])
    for decoder in ("pillow", "torchcodec"):
        with pytest.raises(StudyError, match=r"^a\.jpg: cannot be decoded"):
            decoder_of(settings_of(decoder=decoder))(file)


@pytest.mark.parametrize("kind", ["device", "workers"])
def test_the_record_tells_how_far_a_decoders_pixels_lie_from_pillows(
    tmp_path: Path, photos: Path, kind: str
) -> None:
    pytest.importorskip("torchcodec")
    loader = {"kind": kind} | ({} if kind == "device" else {"workers": 0})
    dataset = {"source": "folder", "path": str(photos), "image_size": 32}
    pillow, torchcodec = (
        tiny_run(loader=loader | {"decoder": decoder}, dataset=dataset, training={"epochs": 1})
        for decoder in ("pillow", "torchcodec")
    )
    assert torch_loop.train(make_job(tmp_path / "pillow", pillow)).decoder_difference is None
    found = torch_loop.train(make_job(tmp_path / "torchcodec", torchcodec)).decoder_difference
    assert found and found.images == 16
    assert 0 <= found.mean <= found.largest <= 255
