# The workflow is in workflow/Snakefile, where `module` and snakedeploy look for it; this file lets `snakemake` start it here.


include: "workflow/Snakefile"


# An include sets no default target (Snakemake 9.27).
workflow.default_target = "all"
