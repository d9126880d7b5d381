"""Published methods of feature selection, one class per module."""

from __future__ import annotations

from l20fs.estimators.base import BaseSelector
from l20fs.methods.baseline import Baseline
from l20fs.methods.cfs import CFS
from l20fs.methods.chi_square import ChiSquare
from l20fs.methods.esfs import ESFS
from l20fs.methods.fisher import FisherScore
from l20fs.methods.information_gain import InformationGain
from l20fs.methods.l21 import L21
from l20fs.methods.lasso_ovr import LassoOVR
from l20fs.methods.lfs import LFS
from l20fs.methods.mrmr import MRMR
from l20fs.methods.nonnegative_l21 import NonnegativeL21
from l20fs.methods.relieff import ReliefF
from l20fs.methods.rfs import RFS
from l20fs.methods.rlsr import RLSR
from l20fs.methods.rpmfs import RPMFS
from l20fs.methods.svm_rfe import SVMRFE
from l20fs.methods.udfs import UDFS
from l20fs.methods.urafs import URAFS

__all__ = [
    "CFS",
    "ESFS",
    "L21",
    "LFS",
    "MRMR",
    "RFS",
    "RLSR",
    "RPMFS",
    "SVMRFE",
    "UDFS",
    "URAFS",
    "Baseline",
    "ChiSquare",
    "FisherScore",
    "InformationGain",
    "LassoOVR",
    "NonnegativeL21",
    "ReliefF",
    "discover",
]


def discover() -> dict[str, type[BaseSelector]]:
    """Return every published method of this package, found among the public names.

    Returns
    -------
    dict of str to type
        The classes by name, in alphabetical order.

    Examples
    --------
    >>> "FisherScore" in discover()
    True
    """
    return {name: globals()[name] for name in sorted(__all__) if name != "discover"}
