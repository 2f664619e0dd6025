"""Wrappers: other views of the same game. One wrapper, one file."""

from .curriculum import Curriculum
from .features import Features
from .grasp import GraspMix
from .menu import Menu
from .protocol import TextProtocol
from .search_discount import SearchDiscount
from .shaping import AnswerLikelihood, PotentialShaping, oracle_potential
from .step_search import StepSearchGain

__all__ = [
    "AnswerLikelihood",
    "Curriculum",
    "Features",
    "GraspMix",
    "Menu",
    "PotentialShaping",
    "SearchDiscount",
    "StepSearchGain",
    "TextProtocol",
    "oracle_potential",
]
