"""What a person can be asked about beside kin: the attributes and the words for their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

__all__ = ["ATTRIBUTES", "Attribute"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its name in questions, and a text for each code.

    ``values`` is empty for the date of birth, whose texts are dates.
    """

    name: str
    values: Sequence[str] = ()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _pairs(firsts: str, seconds: str, *, between: str = " ") -> tuple[str, ...]:
    return tuple(between.join(pair) for pair in product(firsts.split(), seconds.split()))


_OCCUPATIONS = _pairs(
    "amber bronze canal cedar chalk cloth copper cork glass grain harbour ivory leather marble "
    "oyster paper pewter river salt silk slate timber velvet wool",
    "appraiser binder broker carver cutter dyer engraver fitter gilder inspector joiner keeper "
    "mender merchant packer painter polisher surveyor turner weigher",
)
_HOBBIES = _pairs(
    "acorn beetle bell button candle cloud comet fern fossil kite lantern map maze moss moth "
    "mushroom pebble puppet ribbon shell",
    "carving charting collecting counting drawing folding juggling labelling photographing "
    "polishing racing restoring sketching sorting spotting stitching trading tracking weaving "
    "whistling",
)
_TOWNS = _pairs(
    "Ash Birch Crow Dun Elder Fox Gull Hazel Iron Juniper Kettle Lark Mill North Otter",
    "barrow bridge combe cross dale fall ford gate hollow march mere mouth reach ridge stead "
    "strand vale wharf wick worth",
    between="",
)
_DISHES = _pairs(
    "apricot barley beetroot buttermilk chestnut fennel lentil mussel nettle parsnip pumpkin "
    "quince sorrel walnut",
    "broth cake dumpling fritter pasty pickle pie porridge pudding salad soup stew tart",
)
_INSTRUMENTS = _words(
    "accordion bagpipe balafon bassoon bugle carillon cello chimes clarinet clavichord "
    "concertina cornet cymbal dulcimer euphonium fiddle flugelhorn flute glockenspiel gong "
    "harmonium harp harpsichord hautboy kalimba lute lyre mandolin marimba oboe ocarina "
    "piccolo psaltery rebec recorder sackbut shawm sitar spinet tabor theremin timpani "
    "trombone tuba ukulele vibraphone viola virginal zither"
)

ATTRIBUTES: dict[str, Attribute] = {
    "occupation": Attribute("occupation", _OCCUPATIONS),
    "hobby": Attribute("hobby", _HOBBIES),
    "birthplace": Attribute("birthplace", _TOWNS),
    "dish": Attribute("favourite dish", _DISHES),
    "instrument": Attribute("instrument", _INSTRUMENTS),
    "birth": Attribute("date of birth"),
}
