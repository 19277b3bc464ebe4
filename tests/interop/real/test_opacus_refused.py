"""An Opacus without a registry of accountants is refused by name."""

from __future__ import annotations

import importlib
from importlib.metadata import version

import pytest

import privloss as pl


def test_an_earlier_opacus_is_refused_by_name() -> None:
    assert version("opacus") == "1.5.4"
    with pytest.raises(pl.Unsupported, match=r"^Opacus 1\.5\.4: has no registry of accountants; .* 1\.6 or later"):
        importlib.import_module("privloss.interop.opacus")
