"""``privloss statement``: what a training run promises, in words."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from privloss.cli.arguments import Adjacency, AsJson, BatchSize, DatasetSize, Epochs, MaxBatch, Noise, finite, number
from privloss.errors import InvalidInput

Sampling = Annotated[
    str | None,
    typer.Option("--sampling", help="The sampler that ran.  [default: both shuffled epochs and Poisson are stated]"),
]
People = Annotated[str | None, typer.Option("--max-examples-per-user", help="Also state what holds for users.")]


def statement(
    dataset_size: DatasetSize = None,
    batch_size: BatchSize = None,
    noise_multiplier: Noise = None,
    epochs: Epochs = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Target delta.")] = None,
    max_examples_per_user: People = None,
    sampling: Sampling = None,
    adjacency: Adjacency = None,
    max_batch_size: MaxBatch = None,
    as_json: AsJson = False,
) -> None:
    """A privacy statement of a training run, for an example and for a user."""
    from privloss.planning.statement import statement as state

    needed = {
        "dataset_size": dataset_size, "batch_size": batch_size, "noise_multiplier": noise_multiplier,
        "epochs": epochs, "delta": delta,
    }  # fmt: skip
    optional = {"people": max_examples_per_user, "max_batch_size": max_batch_size}
    flags = {"people": "--max-examples-per-user"}
    given: dict[str, Any] = {}
    for name, value in (*needed.items(), *optional.items()):
        flag = flags.get(name, "--" + name.replace("_", "-"))
        if value is None and name in needed:
            raise InvalidInput(f"{flag}: is missing.")
        if value is not None:
            given[name] = number(flag, value)
    said = state(sampling=sampling, adjacency=adjacency, **given)
    print(json.dumps(finite(said.to_dict())) if as_json else said)
