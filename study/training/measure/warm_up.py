"""Which steps are warm-up."""

from study.artifacts.samples import Step


def mark_warm_up(steps: list[Step], stages: list[str]) -> list[Step]:
    """Return the steps with the first slow ones of each stage marked as warm-up.

    ``stages[i]`` is the stage of epoch ``i + 1``. The first step of a stage is always warm-up: it pays for the loader's
    start, the allocator and the first use of each kernel. The next steps are warm-up while they take more than 1.5
    times the median of the stage's second half, up to half of the stage.
    """
    marked: list[Step] = []
    for stage in dict.fromkeys(stages):
        group = [step for step in steps if stages[step.epoch - 1] == stage]
        settled = sorted(step.seconds for step in group[len(group) // 2 :])
        limit = 1.5 * settled[len(settled) // 2] if settled else 0.0
        slow = 1
        while slow < len(group) // 2 and group[slow].seconds > limit:
            slow += 1
        marked += [step.model_copy(update={"warm_up": index < slow}) for index, step in enumerate(group)]
    return marked
