"""What the rules, runs and amounts guard."""

from __future__ import annotations

from tests.ledger.mutants.base import Mutant

_COUNTED = "budget.limit(component)\n                balance ="
_UNCOUNTED = _COUNTED.replace(
    "balance =", "if budget is not None and cap is None:\n                    continue\n                balance ="
)

RULES = (
    Mutant("rules: cap not compared", "decide.py", "        if short:\n", "        if False:\n", "eleven_elevenths"),
    Mutant(
        "rules: keys not compared", "decide.py", "if known.request != command.request:", "if False:", "take_effect_once"
    ),
    Mutant(
        "rules: a key given back enters",
        "decide.py",
        "if frozen is None and known.state == VOIDED:",
        "if False:",
        "given_back",
    ),
    Mutant(
        "rules: anybody may start again",
        "decide.py",
        "command.run and command.run == analysis.run",
        "True",
        "test_states",
    ),
    Mutant("rules: a known key enters frozen", "decide.py", "return frozen or []", "return []", "frozen"),
    Mutant(
        "rules: a start enters frozen",
        "decide.py",
        "    if frozen is not None:\n        return frozen",
        "    if False:\n        return frozen",
        "frozen",
    ),
    Mutant(
        "rules: a late key starts",
        "decide.py",
        "    if analysis.lease < now:",
        "    if False:",
        "expired_key or refusals",
    ),
    Mutant(
        "rules: void after start", "decide.py", "VOIDED: (RESERVED,)}", "VOIDED: (RESERVED, STARTED)}", "test_states"
    ),
    Mutant(
        "rules: a late run is given back", "decide.py", "STARTED: COMMITTED}\n", "STARTED: VOIDED}\n", "count_as_spent"
    ),
    Mutant(
        "rules: leases end early", "decide.py", "in OPEN and analysis.lease < now]", "in OPEN]", "again_does_nothing"
    ),
    Mutant(
        "rules: names as they are written",
        "names.py",
        'before, found = found, " ".join(unicodedata.normalize("NFKC", found).casefold().split())',
        "return text",
        "another_spelling",
    ),
    Mutant(
        "rules: anybody spends under quotas",
        "decide.py",
        "if not account.quotas or command.analyst in",
        "if True or command.analyst in",
        "without_a_quota",
    ),
    Mutant(
        "rules: quotas below what was spent",
        "decide.py",
        "        if budget.shortfall({part: account.spent(command.analyst",
        "        if False and budget.shortfall({part: account.spent(command.analyst",
        "change_after_spends",
    ),
    Mutant(
        "rules: periods in Renyi DP at the budget's orders only",
        "filters.py",
        "caps={**more, **self.caps})",
        "caps={**self.caps})",
        "periods_in_renyi",
    ),
    Mutant(
        "rules: periods of a group at orders it is not charged",
        "filters.py",
        "self.beneath(budget) if group and self.rule != SOME and",
        "self.beneath(budget) if False and",
        "period_of_a_group",
    ),
    Mutant(
        "rules: quotas above the cap",
        "decide.py",
        "if budget.cap > above.cap or any(",
        "if False and any(",
        "change_after_spends",
    ),
    Mutant(
        "rules: caps change after spends",
        "decide.py",
        "    if account.used or (",
        "    if False and (",
        "fixed or refusals",
    ),
    Mutant("rules: quotas that hold at no order", "decide.py", "if not budget.caps:", "if False:", "renyi"),
    Mutant("rules: orders without a cap not counted", "state.py", _COUNTED, _UNCOUNTED, "renyi_quota"),
    Mutant(
        "rules: charges without the groups above",
        "decide.py",
        "if with_groups(own, state) != command.charges and",
        "if False and",
        "refusals",
    ),
    Mutant(
        "rules: a group counts one dataset",
        "decide.py",
        "held.get(part, ZERO) + amount",
        "amount",
        "count_twice",
    ),
    Mutant(
        "rules: groups are spent on",
        "decide.py",
        "if account.group == (account.name",
        "if True or (account.name",
        "are_no_datasets",
    ),
    Mutant(
        "rules: groups of other units",
        "decide.py",
        "if (parent.adjacency, parent.unit) !=",
        "if False and () !=",
        "are_no_datasets",
    ),
    Mutant(
        "rules: periods not counted", "state.py", "        if self.every is not None:\n", "        if False:\n", "year"
    ),
    Mutant(
        "rules: one block for all",
        "state.py",
        "for block in blocks] if self.blocks",
        "for block in list(blocks)[:1]] if self.blocks",
        "its_own_cap",
    ),
    Mutant(
        "rules: blocks not asked for",
        "decide.py",
        "    if given == (account.blocks is not None):",
        "    if True:",
        "blocks_are_said",
    ),
    Mutant(
        "rules: other adjacencies",
        "decide.py",
        "    if command.adjacency in (None, account.adjacency):",
        "    if True:",
        "priced_in_every or refusals",
    ),
    Mutant(
        "rules: other currencies",
        "decide.py",
        "set(command.charges[account.name]) == set(account.priced.caps)",
        "True",
        "refusals or currency",
    ),
    Mutant(
        "runs: the log holds the token",
        "state.py",
        'return hashlib.sha256(token.encode()).hexdigest() if token else ""',
        "return token",
        "log_alone",
    ),
    Mutant(
        "runs: one token for all",
        "ledger.py",
        "secrets.token_hex(16) if token is None",
        '"0" * 16 if token is None',
        "test_states",
    ),
    Mutant(
        "runs: lost replies are not asked again",
        "ledger.py",
        "        except LostReply:\n            return self.store.run(command, self.clock)",
        "        except ZeroDivisionError:\n            raise",
        "reply_lost",
    ),
    Mutant(
        "amounts: all are kept",
        "amounts.py",
        "return value.denominator <= _MOST_DENOMINATOR or",
        "return True or",
        "still_be_committed",
    ),
    Mutant(
        "amounts: costs rounded down",
        "amounts.py",
        "kept(found, bits) else round_up(found, bits)",
        "kept(found, bits) else round_down(found, bits)",
        "safe_direction",
    ),
    Mutant(
        "amounts: caps rounded up",
        "amounts.py",
        "kept(found, bits) else round_down(found, bits)\n    if",
        "kept(found, bits) else round_up(found, bits)\n    if",
        "safe_direction",
    ),
    Mutant(
        "amounts: less than a unit is lost",
        "amounts.py",
        "return max(found, Fraction(1, 2**bits)) if",
        "return found if",
        "least_one_unit",
    ),
    Mutant("amounts: any length", "amounts.py", "if len(text) > longest:", "if False:", "longer_texts"),
)
