"""A tiny world, in which a policy that picks names at random is sometimes right."""

from functools import cache

from seekgym.corpora import Corpus, Document, Task, TaskSet
from seekgym.envs import QAEnv

PAIRS = (("Arl", "Bet"), ("Cor", "Dun"), ("Eld", "Fen"), ("Gar", "Hul"))


class HamletEnv(QAEnv):
    """Asks who founded a hamlet.

    Args:
        **options: Those of every search environment.
    """

    steps = 0  # of all instances: calls of the environment really made

    def __init__(self, **options):
        documents = [
            Document(f"d{i}", hamlet, f"{hamlet} was founded by {founder}.")
            for i, (hamlet, founder) in enumerate(PAIRS)
        ]
        tasks = [
            Task(f"t{i}", f"Who founded {hamlet}?", (founder,), (f"d{i}",))
            for i, (hamlet, founder) in enumerate(PAIRS)
        ]
        super().__init__(
            Corpus.from_documents(documents), TaskSet(tasks), **({"k": 1, "max_turns": 6} | options)
        )

    def finish(self, pending, rankings):
        """Count the call, and run it."""
        HamletEnv.steps += 1
        return super().finish(pending, rankings)


@cache
def hamlets():
    """Return one such environment, whose index is made once."""
    return HamletEnv()
