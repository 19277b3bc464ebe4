"""Rows for the table of environments with real packages: the name of the test file, and what pip is told."""

from __future__ import annotations

ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("opacus", ("torch==2.13.0", "opacus==1.6.0")),
    ("jax_privacy", ("jax-privacy==2.0.0",)),
    ("tf_privacy", ("tensorflow-privacy==0.9.0", "tensorflow==2.15.1")),  # 0.9.0 cannot be imported with later ones
    ("flower", ("flwr==1.42.0",)),
)
