"""The samples of telemetry as a file.

The launcher reads a sampler's and writes its own. NumPy, pandas and pyarrow are imported where they
are needed: the sampler starts when a run does, and would take a core from it; and the launcher
needs none before a run is measured.
"""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.base.errors import StudyError
from study.base.files import whole

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

HOST_COLUMNS = (
    "seconds",  # epoch seconds, as from time.time(), to compare with the run's phases
    "cpu_percent",  # the whole machine, 0 to 100
    "process_resident_bytes",  # the watched process and its children, added up: see Tree
)
GPU_COLUMNS = (
    "gpu_utilisation_percent",  # share of time in which any kernel ran
    "gpu_memory_used_bytes",  # whole device, with what the driver reserves
    "gpu_power_watts",
    "gpu_energy_joules",  # since the driver was loaded
    "gpu_sm_clock_mhz",
    "gpu_temperature_celsius",
    "gpu_throttle_reasons",  # NVML's bit mask
)
COLUMNS = HOST_COLUMNS + GPU_COLUMNS
Samples = dict[str, "NDArray[np.float64]"]
"""The values (n,) of each of ``COLUMNS``, of samples in order of time; NaN where unknown."""
MOST_SAMPLES = 3 * 24 * 3600 * 10
"""Those of three days."""
MOST_BYTES = 200 * MOST_SAMPLES
"""Bytes of them in a table, which somebody else may have written."""


def read_samples(csv: Path) -> Samples:
    """Return the samples of a sampler's CSV; none if it left none.

    A file that cannot be read or has more than ``MOST_BYTES`` bytes counts as none. The last line
    of a killed sampler may be cut off, and is dropped, as is a line that has not a value for each
    column.
    """
    import numpy as np
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    try:
        if csv.stat().st_size > MOST_BYTES:
            raise ValueError("no sampler wrote it")
        content = csv.read_bytes()
        table = read_csv(
            BytesIO(content[: content.rfind(b"\n") + 1]),
            ReadOptions(use_threads=False),
            ParseOptions(invalid_row_handler=lambda row: "skip"),
            ConvertOptions(column_types=dict.fromkeys(COLUMNS, "float64"), include_columns=COLUMNS),
        )
    except (OSError, ValueError, KeyError):
        return {column: np.empty(0) for column in COLUMNS}
    samples = _values(table)
    order = np.argsort(samples["seconds"], kind="stable")
    return {column: values[order] for column, values in samples.items()}


def _values(table: Any) -> Samples:
    """Return the columns of Arrow's table as arrays."""
    return {name: table.column(name).to_numpy().astype("float64") for name in COLUMNS}


def write_parquet(samples: "Mapping[str, ArrayLike] | pd.DataFrame", path: Path) -> None:
    """Write the values of ``COLUMNS`` to the Parquet file ``path`` in one piece."""
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    columns = {}
    for name in COLUMNS:
        values = np.asarray(samples[name], dtype="float64")
        columns[name] = pyarrow.array(values, from_pandas=True)
    with whole(path) as temporary:
        parquet.write_table(pyarrow.table(columns), temporary)


LARGEST_VALUE = 1e18
"""No sample is larger: bytes and bits of a device are far below."""


def from_parquet(content: bytes) -> "pd.DataFrame":
    """Return the samples (columns ``COLUMNS``, float64) in the content of a file of
    :func:`write_parquet`.

    Raise :class:`StudyError` if they cannot be read.
    """
    import pandas as pd
    from pyarrow import BufferReader, types
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(BufferReader(content))
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if max(file.metadata.num_rows, sum(group.num_rows for group in groups)) > MOST_SAMPLES:
            raise StudyError(f"they cannot be read (there are more than {MOST_SAMPLES})")
        if sum(group.total_byte_size for group in groups) > MOST_BYTES:
            raise StudyError(
                f"they cannot be read (they would take more than {MOST_BYTES >> 20} MiB)"
            )
        for name in COLUMNS:
            kind = file.schema_arrow.field(name).type
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise StudyError(f"they cannot be read (the values of {name} are no numbers)")
        frame = pd.DataFrame(_values(file.read(list(COLUMNS), use_threads=False)))
    except (OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise StudyError(f"they cannot be read ({type(error).__name__})") from None
    if (frame.abs().to_numpy() > LARGEST_VALUE).any():
        raise StudyError(f"they cannot be read (a value is above {LARGEST_VALUE:g})")
    return frame


SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80
"""Bits of ``gpu_throttle_reasons``: hardware, software thermal, hardware thermal, power brake
(nvml.h)."""


def throttled_percent(samples: Samples) -> float | None:
    """Return the share of samples in which a slowdown held the GPU's clock, in percent; None if
    none tells."""
    import numpy as np

    values = samples["gpu_throttle_reasons"]
    reasons = values[np.isfinite(values)].astype("int64")
    return float(100 * np.mean((reasons & SLOWDOWNS) != 0)) if len(reasons) else None
