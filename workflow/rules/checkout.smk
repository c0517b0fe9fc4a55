# The package of the checkout that holds this file, before the configuration is read.

import sys
from pathlib import Path

# Where a module was fetched from a host, the package is that one which is installed.
sys.path.insert(0, str(Path(str(workflow.current_basedir)).parent.parent))
NOT_INSTALLED = "install this workflow's package: pip install --editable, and the folder of a clone"
try:
    from study.base import complete_user, python_first

    python_first()
    complete_user()
    from study.base.files import ROOT as BASE
except ModuleNotFoundError as error:
    sys.exit(f"error: {error}: {NOT_INSTALLED}")
from study.base.processes import end_steps_at_once, say_it_in_a_sentence
from study.host.plan.configuration import in_use

say_it_in_a_sentence()  # until the first step begins: from then on Snakemake itself handles Ctrl-C

# A dry run, a lint or Snakemake's own report takes no lock and changes no plan.
REPORTS = any(word.split("=")[0] == "--report" for word in sys.argv) and "--report-after-run" not in sys.argv
READ_ONLY = workflow.output_settings.dryrun or "--lint" in sys.argv or REPORTS
