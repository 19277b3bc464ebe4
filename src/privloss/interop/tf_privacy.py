"""TF Privacy: `PRIVLOSS` goes where its `AccountantType.RDP` and `AccountantType.PLD` go.

``compute_dp_sgd_privacy_statement(..., accountant_type=PRIVLOSS)`` then says what is proven for one example. For users
with several examples TF Privacy asks its Renyi accountant, whichever type it is given; ``privloss statement
--max-examples-per-user`` says what is proven for them.

>>> PRIVLOSS.value, type(PRIVLOSS.get_accountant()).__name__
('privloss', 'PrivlossAccountant')
"""

from __future__ import annotations

from dataclasses import dataclass

from privloss.interop.dp_accounting import PrivlossAccountant


@dataclass(frozen=True)
class AccountantType:
    """The two things that TF Privacy asks of a type of accountant."""

    value: str

    def get_accountant(self) -> PrivlossAccountant:
        return PrivlossAccountant()


PRIVLOSS = AccountantType("privloss")
