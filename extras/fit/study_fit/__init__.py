"""The laws and the optimum of any table of times: no plan, no records, no torch."""

from study_fit.laws import Fit as Fit
from study_fit.laws import fit as fit
