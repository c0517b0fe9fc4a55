"""What was in force in a process that trained: what torch and the model said of themselves, and not what was asked."""

from typing import Annotated

from pydantic import Field

from study.base.strict import Strict

Number = Annotated[int, Field(ge=0, le=2**31)]
Word = Annotated[str, Field(max_length=40)]


class InForce(Strict):
    """How a process computes once its model is built."""

    cpus: Number = Field(description="CPUs that the process may use.")
    threads: Number = Field(description="CPU threads of an operation.")
    interop_threads: Number = Field(description="CPU threads among which operations are shared out.")
    workers: Number = Field(description="Processes, or threads, of the loader.")
    start_method: Word = Field(description="How a loader's processes start.")
    grad_mode: bool = Field(description="True if gradients are recorded.")
    autocast: bool = Field(description="True if operations are cast to another type outside the step, too.")
    default_dtype: Word = Field(description="Type of a new tensor.")
    deterministic: bool = Field(description="True if only deterministic algorithms are allowed.")
    detect_anomaly: bool = Field(description="True if each gradient is looked at for what is no number.")
    flush_denormal: bool = Field(description="True if the smallest numbers count as 0.")
    cudnn: bool
    cudnn_benchmark: bool
    cudnn_deterministic: bool
    mkldnn: bool
    matrix_products: Word = Field(description="Arithmetic of matrix products in fp32: ieee, tf32 or bf16.")
    convolutions: Word = Field(description="Arithmetic of convolutions in fp32.")
    memory_format: Word = Field(description="Order of the weights of convolutions in memory.")
    dtypes: list[Word] = Field(description="Types of the parameters; empty without a model.")
    devices: list[Word] = Field(description="Devices of the parameters and buffers; empty without a model.")
