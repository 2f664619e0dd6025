"""Teams: scripted, reading by rules, random; how a team's episode is played."""

from .chance import RandomAnswerer, RandomLeader, RandomSearcher
from .plan import branches
from .play import Team, TeamEpisode, difference_rewards, play_team
from .reading import ReadingAnswerer, ReadingLeader, ReadingSearcher
from .scripted import ScriptedAnswerer, ScriptedLeader, ScriptedSearcher

__all__ = [
    "TEAMS",
    "RandomAnswerer",
    "RandomLeader",
    "RandomSearcher",
    "ReadingAnswerer",
    "ReadingLeader",
    "ReadingSearcher",
    "ScriptedAnswerer",
    "ScriptedLeader",
    "ScriptedSearcher",
    "Team",
    "TeamEpisode",
    "branches",
    "difference_rewards",
    "play_team",
]

TEAMS: dict[str, Team] = {
    team.name: team
    for team in (
        Team("random-team", RandomLeader, RandomSearcher, RandomAnswerer),
        Team("reading-team", ReadingLeader, ReadingSearcher, ReadingAnswerer),
        Team("scripted-team", ScriptedLeader, ScriptedSearcher, ScriptedAnswerer),
    )
}
