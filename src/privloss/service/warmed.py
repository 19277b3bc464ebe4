"""Loaded once by the process that workers are forked from: they begin with everything that prices need."""

from __future__ import annotations

from privloss.service import jobs

jobs.warm()
