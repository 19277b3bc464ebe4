"""Tests of real packages are collected in their own environments only."""

from __future__ import annotations

import os

from tests.interop.environments import SWITCH

collect_ignore = [] if SWITCH in os.environ else ["real"]
