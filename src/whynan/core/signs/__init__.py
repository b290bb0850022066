"""Early signs that a run goes wrong: each looks at plain numbers as they are measured, and speaks once at most."""

from whynan.core.signs.components import LossComponentDominates
from whynan.core.signs.gradients import DeadLayer, ParameterWithoutGradient
from whynan.core.signs.growth import GradientNormGrowing, LossGrowing, LossUnbounded, ParameterRunningAway
from whynan.core.signs.headroom import HeadroomShrinking
from whynan.core.signs.labels import OneClassBatches
from whynan.core.signs.rates import RateRising
from whynan.core.signs.scaler import ScalerSkipping
from whynan.core.signs.sign import Sign
from whynan.core.signs.updates import UpdateRatioHigh

__all__ = [
    "DeadLayer",
    "GradientNormGrowing",
    "HeadroomShrinking",
    "LossComponentDominates",
    "LossGrowing",
    "LossUnbounded",
    "OneClassBatches",
    "ParameterRunningAway",
    "ParameterWithoutGradient",
    "RateRising",
    "ScalerSkipping",
    "Sign",
    "UpdateRatioHigh",
]
