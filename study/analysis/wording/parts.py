"""What a reader must know of the parts of a time."""

import pandas as pd


def graph_warm_up_sentence(rows: pd.DataFrame) -> str:
    """Return where the warm-up of captured steps lies in the parts of ``rows``, which are of the table of timings.

    It is empty where it lies in a part of its own, or where no captured step is told by a factor of the study.
    """
    if "training.cuda_graph" not in rows:
        return ""
    captured = rows[rows["training.cuda_graph"] == "cuda graph"]  # as ``config.study.shown`` names the level
    if not captured["graph_warm_up_seconds"].eq(0).any():
        return ""
    return (
        " These records have no part for the warm-up before a step is captured as a CUDA graph: it is in the "
        "transforms on the device."
    )
