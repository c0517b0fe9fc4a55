"""What the Makefile calls, and a person hardly ever does."""

import argparse

from study.verbs.declare import RESULTS, argument, verb


@verb(argument("snakemake", nargs="*", help="after --: the arguments that Snakemake gets"))
def engine(options: argparse.Namespace) -> None:
    """Print the engine of the runs: docker, podman, apptainer or none."""
    from study.base import checkout
    from study.config.load import read_selection
    from study.host.engine import engine_choice
    from study.host.plan import configuration

    checkout.root()
    print(
        engine_choice.choose_engine(
            read_selection(configuration.as_snakemake_reads_it(options.snakemake)), fetch=True
        ).engine
    )


@verb(argument("device", choices=["cpu", "cuda"]), RESULTS)
def archive(options: argparse.Namespace) -> None:
    """Save a device's image for a site without a registry."""
    from study.host.steps.prepare import archive_image

    target = archive_image(options.device, options.results)
    print(f"{target}: on another machine, add: --config 'images={{{options.device}: {target.name}}}'")


@verb()
def schema(options: argparse.Namespace) -> None:
    """Write workflow/schemas, config/README.md and docs/timings.md from the models."""
    from study.base import checkout
    from study.base.files import write_whole
    from study.schema import generated_files

    root = checkout.root()
    for path, text in generated_files().items():
        write_whole(root / path, text)
        print(path)
