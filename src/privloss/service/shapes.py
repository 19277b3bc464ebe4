"""The bodies of requests. Amounts are texts ("1/11", "0.5"): a JSON number would have been rounded before it came here.

What a name, an amount or a lease may be is the ledger's to say; here stands only what a request may hold at all.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=200)]
Amount = Annotated[str, Field(min_length=1, max_length=60)]
Text = Annotated[str, Field(max_length=500)]
Labels = Annotated[dict[str, Text], Field(max_length=20)]
Blocks = (
    Annotated[str, Field(max_length=100)]
    | Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=1000)]
)
Datasets = Annotated[list[Name], Field(min_length=1, max_length=16)]
PlanFile = dict[str, Any]


class Shape(BaseModel):
    """Nothing that is not declared, and no text taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Said(Shape):
    """What a person says with a command: it stands in the event, and decides nothing."""

    reason: Text = ""
    labels: Labels | None = None


class Why(Shape):
    reason: Text = ""


class NewAccount(Said):
    """A dataset, or with `group` a group of datasets."""

    adjacency: str
    unit: Name = "record"
    parent: Name | None = None
    blocks: str | None = None
    group: bool = False


class Quota(Said):
    currency: str
    cap: Amount
    delta: Amount | None = None
    filter: str | None = None


class Budget(Quota):
    """With `every` ("year", ...) what may be spent in each period beneath the budget."""

    every: str | None = None


class Frozen(Said):
    frozen: bool


class Evidence(Said):
    """An audit's result, as `privloss audit ... --json` prints it."""

    audit: dict[str, Any]
    date: str | None = None


class Asked(Shape):
    """What is asked of datasets: a plan, or a typed cost."""

    datasets: Datasets
    plan: PlanFile | None = None
    cost: Amount | None = None
    cost_delta: Amount | None = None
    blocks: Blocks | None = None


class Quote(Asked):
    analyst: Name | None = None  # whose quota applies; an analyst's own name if it is an analyst who asks


class Reserve(Asked):
    lease: float = 3600.0  # seconds
    label: Text = ""
    reason: Text = ""
    labels: Labels | None = None


class Start(Why):
    """`run` is drawn at random for this one start: with it a lost reply can be asked for again."""

    run: Annotated[str, Field(min_length=16, max_length=200)]
    lease: float | None = None


class Price(Shape):
    """What a plan costs in a budget's currency."""

    plan: PlanFile
    currency: str
    cap: Amount
    delta: Amount | None = None
    filter: str | None = None
    cost_delta: Amount | None = None


class Question(Shape):
    """Epsilon at a delta, or delta at an epsilon."""

    plan: PlanFile
    delta: float | None = None
    epsilon: float | None = None
    adjacency: str | None = None


class Calibrate(Shape):
    """By which factor all noise of a plan must grow (or may shrink) to meet a target."""

    plan: PlanFile
    epsilon: float
    delta: float
    adjacency: str | None = None


class Compare(Shape):
    plan: PlanFile
    delta: float
    adjacency: str | None = None
    noise: bool = False
