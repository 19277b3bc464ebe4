"""Mechanisms from outside, with the same rights as those inside: sampled, saved, reloaded, grouped, priced."""

from __future__ import annotations

import dataclasses

from privloss.errors import InvalidInput
from privloss.mechanisms.base import Mechanism
from privloss.mechanisms.kinds import KINDS, Kind, add_kind


def register(kind: Kind) -> Kind:
    """Enter a mechanism's record into the registry; see docs/extending.md."""
    if not isinstance(kind, Kind):
        raise InvalidInput(f"kind = {kind!r}: must be a privloss.Kind.")
    made = kind.description
    if not (isinstance(made, type) and issubclass(made, Mechanism) and dataclasses.is_dataclass(made)):
        raise InvalidInput(f"description = {made!r}: must be a frozen dataclass, a subclass of privloss.Mechanism.")
    if getattr(made, "kind", None) != kind.name:
        raise InvalidInput(f"kind = {getattr(made, 'kind', None)!r}: the description must name itself {kind.name!r}.")
    if any(k.description is made for k in KINDS.values()):
        raise InvalidInput(f"description = {made.__name__}: is registered already.")
    if not callable(kind.step):
        raise InvalidInput(f"step = {kind.step!r}: must be a function from a mechanism and an adjacency to a Step.")
    return add_kind(kind)
