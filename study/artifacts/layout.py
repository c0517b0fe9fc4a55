"""The layout of a results folder: the path of each file that the pipeline writes and reads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Results:
    """The paths in the results folder ``root``. Nothing is read, and no file needs to exist.

    ``study`` is a study's name, ``record`` the file name of a record
    (:attr:`study.artifacts.run.Run.file`).
    """

    root: Path = Path("results")

    @property
    def selection(self) -> Path:
        """The names of the studies that were started last."""
        return self.root / "plan.json"

    @property
    def report(self) -> Path:
        """The page about every selected study."""
        return self.root / "report.html"

    @property
    def report_made_of(self) -> Path:
        """The checksum of what the page was made of."""
        return self.root / "report.made_of"

    @property
    def lock(self) -> Path:
        """The lock of a start of the pipeline."""
        return self.root / ".lock"

    @property
    def devices(self) -> Path:
        """What is never made: a start asks for it where a device that it names measures nothing."""
        return self.root / "devices"

    def start(self, number: int) -> Path:
        """Return the mark of a start, which its first step makes."""
        return self.root / f".start-{number}"

    def download_lock(self, source: str) -> Path:
        """Return the lock of the downloads from a source of images."""
        return self.root / f".{source}.lock"

    def log(self, *parts: str) -> Path:
        """Return the log of a step from the parts of its name, as the workflow's rules name it,
        too."""
        return self.root / "logs" / Path(*parts[:-1], f"{parts[-1]}.log")

    # The files that studies share.

    @property
    def hub(self) -> Path:
        """The folder of torch's downloaded weights."""
        return self.root / "weights"

    @property
    def cuda_cache(self) -> Path:
        """The folder of the GPU's code that the driver compiled in containers, which end with their
        home folder."""
        return self.root / "cuda_cache"

    @property
    def downloads(self) -> Path:
        """The folder of downloaded data sets."""
        return self.root / "data" / "downloads"

    @property
    def unpacked(self) -> Path:
        """The folder of data sets that were unpacked from archives elsewhere."""
        return self.root / "data" / "unpacked"

    def data(self, dataset: str) -> Path:
        """Return the folder of a dataset."""
        return self.root / "data" / dataset

    def manifest(self, dataset: str) -> Path:
        """Return the manifest of a dataset."""
        return self.data(dataset) / "manifest.json"

    def image(self, name: str) -> Path:
        """Return the description of an image: a device's has the device's name."""
        return self.root / "images" / f"{name}.json"

    def environment(self, name: str) -> Path:
        """Return the description of an environment of packages that is made from a lock."""
        return self.root / "environments" / f"{name}.json"

    def environment_folder(self, name: str) -> Path:
        """Return the folder of an environment of packages."""
        return self.root / "environments" / name

    def warm_up_run(self, start: str, node: str | None, device: str, way: str) -> Path:
        """Return the record of the warm-up run of a way of computing that a start made on a device
        of a machine: no analysis reads it."""
        return self.root / "warm_up_runs" / f"{start}.{node}.{device}.{way}.json"

    # The files of one study.

    def plan(self, study: str) -> Path:
        """Return the plan of ``study``."""
        return self.root / study / "plan.json"

    def length(self, study: str) -> Path:
        """Return the length that a study with a ladder has in these results."""
        return self.root / study / "length.json"

    def session(self, study: str) -> Path:
        """Return what the last session meant to do in ``study``."""
        return self.root / study / "session.json"

    def decisions(self, study: str) -> Path:
        """Return the folder of the decisions about weights."""
        return self.root / study / "weights"

    def weights(self, study: str, weights: str) -> Path:
        """Return the decision about the weights of one model."""
        return self.decisions(study) / f"{weights}.json"

    def records(self, study: str) -> Path:
        """Return the folder of the records."""
        return self.root / study / "records"

    def record(self, study: str, record: str) -> Path:
        """Return the record of one run."""
        return self.records(study) / record

    def blocks(self, study: str) -> Path:
        """Return the folder of the blocks' files, which stand for the records in the workflow."""
        return self.root / study / "blocks"

    def block(self, study: str, block: str) -> Path:
        """Return the file of a block."""
        return self.blocks(study) / f"{block}.json"

    def telemetry_folder(self, study: str) -> Path:
        """Return the folder of the samples."""
        return self.root / study / "telemetry"

    def telemetry(self, study: str, record: str) -> Path:
        """Return the samples of the run with this record."""
        return self.telemetry_folder(study) / record.replace(".json", ".parquet")

    def timings(self, study: str) -> Path:
        """Return the table of the runs."""
        return self.root / study / "timings.csv"

    def epochs(self, study: str) -> Path:
        """Return the table of the runs' epochs."""
        return self.root / study / "epochs.csv"

    def fit(self, study: str) -> Path:
        """Return the analysis."""
        return self.root / study / "fit.json"

    def made_of(self, study: str) -> Path:
        """Return the checksum of what the analysis was made of."""
        return self.root / study / "made_of"

    def figures(self, study: str) -> Path:
        """Return the folder of the figures."""
        return self.root / study / "figures"
