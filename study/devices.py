"""Which devices this machine has, asked without importing torch."""

import os


def absent(device: str) -> str | None:
    """Why ``device`` cannot serve on this machine; None where it can."""
    if device == "cpu":
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except Exception:
        return "no NVIDIA driver answers on this machine"
    return None if count else "the NVIDIA driver knows no GPU"
