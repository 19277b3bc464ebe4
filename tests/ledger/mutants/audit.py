"""What audits, heads and backups guard."""

from __future__ import annotations

from tests.ledger.mutants.base import Mutant

AUDIT = (
    Mutant(
        "audit: hashes not compared",
        "replay.py",
        " or chain(entry.previous, entry.body) != entry.hash",
        "",
        "forged_event",
    ),
    Mutant("audit: links not compared", "replay.py", "entry.previous != previous or ", "", "forged_event"),
    Mutant("audit: numbers not compared", "replay.py", "if entry.seq != seq + 1:", "if False:", "what_was_changed"),
    Mutant(
        "audit: an event in a foreign chain", "replay.py", "if entry.chain not in places:", "if False:", "do_not_fit"
    ),
    Mutant("audit: an event in some chains only", "replay.py", "if last and self._waiting:", "if False:", "do_not_fit"),
    Mutant(
        "audit: an event overtaken in a chain",
        "replay.py",
        "if any(entry.chain in missing",
        "if False and any(entry.chain in missing",
        "do_not_fit",
    ),
    Mutant("audit: older events after newer ones", "replay.py", "if old and self._modern:", "if False:", "do_not_fit"),
    Mutant(
        "audit: chains begin anywhere",
        "replay.py",
        'if event["after"] != {"seq": seq, "hash": link}:',
        "if False:",
        "begins_at_the_end",
    ),
    Mutant("audit: a closed key again", "replay.py", "if mark in self._seen:", "if False:", "do_not_fit"),
    Mutant(
        "audit: decisions not made again",
        "replay.py",
        "(unlawful_before_chains if old else unlawful)(self.state, event)",
        '""',
        "would_not_have_made",
    ),
    Mutant("audit: decisions not compared", "lawful.py", "if made == [bare] else", "if True else", "that_was_changed"),
    Mutant(
        "audit: order of events not compared",
        "lawful.py",
        "else _out_of_turn(state, event)",
        'else ""',
        "out_of_turn",
    ),
    Mutant(
        "audit: order of older events",
        "lawful.py",
        "    return _out_of_turn(state, event)",
        '    return ""',
        "of_then_that_was",
    ),
    Mutant(
        "audit: caps of older events",
        "replay.py",
        "return self._exceeded(event) if old",
        'return "" if old',
        "of_then_that_was",
    ),
    Mutant(
        "audit: balances not compared",
        "verify.py",
        "if tuple(rows[name][:5]) != account_row(account) or kept.get(name, {}) != wanted:",
        "if False:",
        "what_was_changed",
    ),
    Mutant("audit: keys not compared", "verify.py", "if told.total != kept.total:", "if False:", "what_was_changed"),
    Mutant("audit: leases not compared", "verify.py", "if sorted(wanted) != leases", "if False", "what_was_changed"),
    Mutant(
        "audit: ends not compared",
        "verify.py",
        "if (rows[name][5], rows[name][6]) !=",
        "if False and () !=",
        "what_was_changed",
    ),
    Mutant(
        "head: any signature",
        "verify.py",
        "if not hmac.compare_digest(",
        "if False and not hmac.compare_digest(",
        "head",
    ),
    Mutant(
        "head: ends that were not signed",
        "verify.py",
        'if "ends" in head and head_of(ends) != said:',
        "if False:",
        "ends_were_edited",
    ),
    Mutant("head: another history", "verify.py", "row is None or row[0] != link", "row is None", "head"),
    Mutant(
        "restored: nothing is frozen",
        "state.py",
        "for account in state.accounts.values():\n            account.frozen = True",
        "pass",
        "restored_ledger or backup_and",
    ),
)
