"""Episodes: played, written down, read, and played again; rollouts of many as pipelines."""

from .budget import Budget, Cost, total_cost
from .buffer import Draw, ReplayBuffer, Store
from .cluster import RayWorkers
from .control import (
    Allocation,
    ByDifficulty,
    Limit,
    Take,
    UntilRight,
    UntilVariance,
    generate_groups,
)
from .filter import (
    CausallyGrounded,
    Correct,
    Deduplicated,
    Filter,
    Finished,
    GroupVariance,
    MinReward,
    NoLeak,
    Valid,
    WellFormed,
    WholeGroups,
)
from .generate import generate, resume
from .grounding import ungrounded
from .pipeline import Generate, Pipeline, Report, Resume, Source, Stage, groups_of
from .play import play, replay
from .running import EpisodePlan, Reply, RunningEpisode, Start
from .trajectory import (
    Segment,
    Trajectory,
    Turn,
    encodable,
    read_trajectories,
    write_trajectories,
)
from .trees import TailShape, TreeShape, generate_tails, generate_trees, tree_of, turn_owners

__all__ = [
    "Allocation",
    "Budget",
    "ByDifficulty",
    "CausallyGrounded",
    "Correct",
    "Cost",
    "Deduplicated",
    "Draw",
    "EpisodePlan",
    "Filter",
    "Finished",
    "Generate",
    "GroupVariance",
    "Limit",
    "MinReward",
    "NoLeak",
    "Pipeline",
    "RayWorkers",
    "ReplayBuffer",
    "Reply",
    "Report",
    "Resume",
    "RunningEpisode",
    "Segment",
    "Source",
    "Stage",
    "Start",
    "Store",
    "TailShape",
    "Take",
    "Trajectory",
    "TreeShape",
    "Turn",
    "UntilRight",
    "UntilVariance",
    "Valid",
    "WellFormed",
    "WholeGroups",
    "encodable",
    "generate",
    "generate_groups",
    "generate_tails",
    "generate_trees",
    "groups_of",
    "play",
    "read_trajectories",
    "replay",
    "resume",
    "total_cost",
    "tree_of",
    "turn_owners",
    "ungrounded",
    "write_trajectories",
]
