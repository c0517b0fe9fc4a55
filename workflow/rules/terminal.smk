# The terminal shows our own lines, and the warnings and errors of Snakemake, whose other words go to its log in
# .snakemake/log. This comes before the configuration is read. The logic is in study/host/plan/terminal.py.

import sys
from pathlib import Path

# The package of the checkout that holds this file. Where a module was fetched from a host, that one which is installed.
sys.path.insert(0, str(Path(str(workflow.current_basedir)).parent.parent))
NOT_INSTALLED = "install this workflow's package: pip install --editable, and the folder of a clone"
try:
    from study.base.surroundings import complete_user, python_first

    python_first()
    complete_user()
    from study.base.files import ROOT as BASE
except ModuleNotFoundError as error:
    sys.exit(f"error: {error}: {NOT_INSTALLED}")
from study.host.plan.configuration import in_use
from study.host.plan.terminal import quieten, say_it_in_a_sentence, tell_answer

say_it_in_a_sentence()  # until the first step begins: from then on Snakemake itself handles Ctrl-C

# A dry run, a lint or Snakemake's own report is asked for Snakemake's own words, takes no lock and changes no plan.
REPORTS = any(word.split("=")[0] == "--report" for word in sys.argv) and "--report-after-run" not in sys.argv
READ_ONLY = workflow.output_settings.dryrun or "--lint" in sys.argv or REPORTS


def say_nothing_is_left():
    print("nothing is left to do: the report is up to date", file=sys.stderr, flush=True)
    say_answer()


def say_answer():
    """Tell the answer at the end of a start that was to make the report."""
    if not (workflow.dag_settings.targets or workflow.dag_settings.until):
        tell_answer()


def say_how_it_ended(study, run, key):
    """Tell how a run ended that another machine made: what its step said is in its log."""
    if FLOW.on_other_machines and (told := FLOW.told(study, run, key)):
        print(told, file=sys.stderr, flush=True)


# The words of a job that an executor started go to that job's log.
QUIET = workflow.is_main_process and not READ_ONLY and not workflow.output_settings.verbose
if QUIET and not hasattr(workflow, "study"):
    quieten(say_nothing_is_left, say_how_it_ended, workflow.modifier.modify_rulename("measure"))
