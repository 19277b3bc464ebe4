"""What the stores guard."""

from __future__ import annotations

from tests.ledger.mutants.base import Mutant

_SQLITE, _POSTGRES = "stores/migrations/sqlite/0008.sql", "stores/migrations/postgres/0003.sql"
_EVENTS = "stores/migrations/sqlite/0007.sql"  # makes the table of events anew
_REPEATS = "stores/repeats.py"
_CAP = ",\n  CHECK (total_units <= cap_units)"
_APPEND = "UPDATE OR DELETE OR TRUNCATE"
_DECIDED = "found = iter(self._decided(commands, group[0].clock))\n"
_EARLY = """
        import time
        try:
            with self._inner.transaction() as cursor:
                held = self._inner.load(cursor, commands, time.time, self._inner.remembered(cursor))
                made, events = self._inner.decided(held, commands)
                self._inner.write(cursor, held, [event for each in events for event in each])
                for work, one in zip(group, made, strict=True):
                    work.done([one])
        except LedgerError:
            pass
        return
"""

STORES = (
    Mutant(
        "sqlite: BEGIN for BEGIN IMMEDIATE", "stores/sqlite.py", '"BEGIN IMMEDIATE"', '"BEGIN"', "sees_what_the_first"
    ),
    Mutant(
        "sqlite: commits not synced", "stores/sqlite.py", "synchronous = FULL", "synchronous = OFF", "commits_of_sqlite"
    ),
    Mutant("sqlite: no CHECK of the cap", _SQLITE, _CAP, "", "itself_holds_the_cap"),
    Mutant("sqlite: no CHECK of the sign", _SQLITE, " AND total_units >= '0'", "", "itself_holds_the_cap"),
    Mutant("sqlite: no CHECK of the length", _SQLITE, "length(total_units) = 60 AND ", "", "itself_holds_the_cap"),
    Mutant(
        "sqlite: no CHECK of a cap's length", _SQLITE, " OR length(cap_units) = 60", " OR TRUE", "itself_holds_the_cap"
    ),
    Mutant("sqlite: events can be changed", _EVENTS, "BEFORE UPDATE ON event", "BEFORE UPDATE ON meta", "keeps_events"),
    Mutant(
        "sqlite: events can be deleted", _EVENTS, "BEFORE DELETE ON event", "BEFORE DELETE ON dataset", "keeps_events"
    ),
    Mutant(
        "sqlite: events can be replaced",
        _SQLITE,
        "SELECT RAISE(ABORT, 'events are append-only')",
        "SELECT 1",
        "keeps_events",
    ),
    Mutant(
        "sqlite: an older copy goes on",
        "stores/sqlite.py",
        "        if missing:\n",
        "        if False:\n",
        "older_copy",
    ),
    Mutant("sqlite: no mark is written", "stores/sqlite.py", "store.mark.write(last)", "pass", "older_copy"),
    Mutant("sqlite: anybody may read the file", "stores/sqlite.py", "0o600", "0o644", "nobody_but_its_owner"),
    Mutant(
        "postgresql: no FOR UPDATE", "stores/postgres.py", '_HOLD = " FOR UPDATE"', '_HOLD = ""', "sees_what_the_first"
    ),
    Mutant(
        "postgresql: commits not synced",
        "stores/postgres.py",
        "SET synchronous_commit = on",
        "SELECT 1",
        "commits_of_post",
    ),
    Mutant("postgresql: stopped clients stay", "stores/postgres.py", "idle=IDLE_WAIT", "idle=0", "how_long_a_client"),
    Mutant("postgresql: waiting for ever", "stores/postgres.py", "lock=LOCK_WAIT", "lock=0", "how_long_a_client"),
    Mutant(
        "postgresql: lost replies are not known",
        "stores/postgres.py",
        "            if sent:",
        "            if False:",
        "reply_lost_after",
    ),
    Mutant(
        "postgresql: dead connections are used",
        "stores/postgres.py",
        "return not ready",
        "return True",
        "works_at_once",
    ),
    Mutant(
        "postgresql: passwords are printed",
        "stores/postgres.py",
        'return f"postgresql://{host}',
        'return address + f"{host}',
        "no_password",
    ),
    Mutant("postgresql: no CHECK of the cap", _POSTGRES, _CAP, "", "itself_holds_the_cap"),
    Mutant("postgresql: no CHECK of the sign", _POSTGRES, " AND total_units >= '0'", "", "itself_holds_the_cap"),
    Mutant(
        "postgresql: no CHECK of the length", _POSTGRES, "length(total_units) = 60 AND ", "", "itself_holds_the_cap"
    ),
    Mutant("postgresql: events can be changed", _POSTGRES, _APPEND, "DELETE OR TRUNCATE", "keeps_events"),
    Mutant("postgresql: events can be deleted", _POSTGRES, _APPEND, "UPDATE OR TRUNCATE", "keeps_events"),
    Mutant("postgresql: events can be truncated", _POSTGRES, _APPEND, "UPDATE OR DELETE", "keeps_events"),
    Mutant(
        "stores: the client's clock",
        "stores/loading.py",
        "{self.text(self.sql_now)}",
        "{self.text(repr(__import__('time').time()))}",
        "fast_clock",
    ),
    Mutant(
        "stores: periods as the client guessed",
        "stores/loading.py",
        "        if more:\n",
        "        if False:\n",
        "servers_year",
    ),
    Mutant(
        "postgresql: a chain that has grown is overwritten",
        "stores/postgres.py",
        " AND seq = ? AND head = ? AND frozen",
        " AND seq >= ? AND ? <> '' AND frozen",
        "sees_what_the_first_wrote",
    ),
    Mutant(
        "stores: keys of datasets not held",
        "stores/loading.py",
        "if found.key in claimed or found.charges.keys() <= state.accounts.keys():",
        "if True:",
        "key_made_meanwhile",
    ),
    Mutant(
        "stores: leases are never given back",
        "stores/base.py",
        "if held.late and wait:",
        "if False:",
        "over_several_datasets",
    ),
    Mutant(
        "stores: some leases are given back",
        "stores/base.py",
        "_MOST_ROUNDS = 100",
        "_MOST_ROUNDS = 1",
        "over_several_datasets",
    ),
    Mutant(
        "stores: the ledger not held by a new dataset",
        "commands.py",
        "return (LEDGER, self.name,",
        "return (self.name,",
        "added_twice",
    ),
    Mutant(
        "stores: tables of another program",
        "stores/schema.py",
        "return _OTHER_TABLES if clash",
        "return _OTHER_TABLES if False",
        "tables_of_another",
    ),
    Mutant(
        "stores: an upgrade heals damage",
        "stores/schema.py",
        '    if problem:\n        raise LedgerError(f"the ledger cannot',
        '    if False:\n        raise LedgerError(f"the ledger cannot',
        "damage_is_not_healed",
    ),
    Mutant(
        "stores: totals padded behind the sign",
        "state.py",
        ".zfill(_DIGITS)  #",
        '.rjust(_DIGITS, "0")  #',
        "sort_like_numbers",
    ),
    Mutant(
        "stores: words are a file's name",
        "stores/address.py",
        " or _CONNINFO.match(address) is not None",
        "",
        "every_way_to_write",
    ),
    Mutant(
        "sqlite: remembers what another has changed",
        "stores/sqlite.py",
        "same, cursor.lent, cursor.written = cursor.written == others,",
        "same, cursor.lent, cursor.written = True,",
        "what_another_process_wrote",
    ),
    Mutant(
        "sqlite: remembers what was restored",
        "stores/sqlite.py",
        "connection.lent, connection.known, connection.last = connection.known, None, 0",
        "connection.lent, connection.last = connection.known, 0",
        "what_was_written_past_the_rules",
    ),
    Mutant(
        "stores: remembers that no lease ends",
        "stores/writing.py",
        "held.soonest[name] = min(found.lease, held.soonest[name])",
        "pass",
        "a_lease_that_ends_is_not_forgotten",
    ),
    Mutant(
        "postgresql: remembers beyond the end of the chain",
        "stores/postgres.py",
        "AND seq = ? AND head = ? AND frozen",
        "AND seq = ? AND ? <> '' AND frozen",
        "another_history_of_equal_length",
    ),
    Mutant(
        "postgresql: not frozen by what was remembered",
        "stores/postgres.py",
        "AND frozen = ?{near}",
        "AND ? >= 0{near}",
        "a_ledger_that_was_restored",
    ),
    Mutant(
        "postgresql: a clock that has jumped",
        "stores/postgres.py",
        "- ?) < {_NEAR}",
        "- ?) < 1e9",
        "clock_that_has_jumped",
    ),
    Mutant(
        "postgresql: refused by what was remembered",
        "stores/postgres.py",
        "if new_keys and not all_taken(commands, events, outcomes):",
        "if False:",
        "same_key_again_when_the_budget_is_full",
    ),
    Mutant("repeats: sums not looked at", _REPEATS, "if left < size:", "if False:", "end_of_a_budget"),
    Mutant("repeats: one unit too much", _REPEATS, "if left < size:", "if left + 1 < size:", "end_of_a_budget"),
    Mutant("repeats: a key twice", "stores/sqlite.py", "if key not in known:", "if True:", "twice_in_a_group"),
    Mutant("repeats: known keys count", "stores/sqlite.py", "repeats.undo()", "pass", "keys_that_are_known_in_a_group"),
    Mutant(
        "repeats: sums not undone",
        _REPEATS,
        "balance.hold(-balance.of(top, bottom))",
        "pass",
        "keys_that_are_known_in_a_group",
    ),
    Mutant(
        "repeats: undone by an older denominator",
        _REPEATS,
        "hold(-balance.of(top, bottom))",
        "hold(-top)",
        "denominator_has_grown",
    ),
    Mutant(
        "repeats: ends of chains not undone",
        _REPEATS,
        "self.held.ends.update(self._before)",
        "pass",
        "keys_that_are_known_in_a_group",
    ),
    Mutant(
        "sqlite: a lease elsewhere hides the next",
        "stores/sqlite.py",
        'held.soonest.update(dict.fromkeys(names, float("inf") if',
        'held.soonest.update(dict.fromkeys(names, float("inf") if True or',
        "a_lease_that_nobody_gives_back",
    ),
    Mutant(
        "sqlite: an upgrade loses the order of events",
        _EVENTS,
        "SELECT number, chain, seq, previous, body, hash FROM event_6 ORDER BY number",
        "SELECT NULL, chain, seq, previous, body, hash FROM event_6 ORDER BY chain, seq",
        "an_upgrade_that_is_cut_off",
    ),
    Mutant(
        "sqlite: an upgrade loses its triggers",
        _SQLITE,
        "CREATE TRIGGER event_no_replace BEFORE INSERT ON event",
        "CREATE TRIGGER event_no_replace BEFORE INSERT ON place",
        "an_upgrade_that_is_cut_off",
    ),
    Mutant(
        "sqlite: an event is replaced by its number",
        _SQLITE,
        "WHEN (NEW.number > 0 AND EXISTS (SELECT 1 FROM event WHERE number = NEW.number)) OR",
        "WHEN",
        "an_event_must_follow",
    ),
    Mutant(
        "sqlite: a place in a chain is taken twice",
        _SQLITE,
        "OR (NEW.seq, NEW.previous) <> (SELECT seq + 1, head FROM",
        "OR (SELECT 0 FROM",
        "last_event_cannot_be_replaced",
    ),
    Mutant(
        "sqlite: a place in a chain is left out",
        _SQLITE,
        "OR (NEW.seq, NEW.previous) <> (SELECT seq + 1, head FROM",
        "OR (SELECT NEW.seq <= seq OR NEW.previous <> head FROM",
        "an_event_must_follow",
    ),
    Mutant(
        "sqlite: an event need not follow",
        _SQLITE,
        "OR (NEW.seq, NEW.previous) <> (SELECT seq + 1, head FROM",
        "OR NEW.seq <> (SELECT seq + 1 FROM",
        "an_event_must_follow",
    ),
    Mutant(
        "sqlite: another key's event",
        _SQLITE,
        " AND json_extract(e.body, '$.key') = c.key",
        "",
        "names_what_was_changed",
    ),
    Mutant(
        "sqlite: an event has another number",
        "stores/sqlite.py",
        "if cursor.last != last:",
        "if False:",
        "another_number",
    ),
    Mutant(
        "sqlite: leases of closed keys are noted",
        _SQLITE,
        "coalesce(c.state, 'STARTED') = 'STARTED'",
        "TRUE",
        "leases_that_are_noted",
    ),
    Mutant(
        "sqlite: leases of started keys are not noted",
        _SQLITE,
        "coalesce(c.state, 'STARTED') = 'STARTED'",
        "c.state IS NULL",
        "leases_that_are_noted",
    ),
    Mutant("sqlite: restored leases come twice", _SQLITE, " AND c.number > 0", "", "leases_that_are_noted"),
    Mutant(
        "sqlite: recent leases hide nothing",
        "stores/sqlite.py",
        "SELECT lease FROM recent_lease{0}",
        "SELECT lease FROM noted_lease{0}",
        "leases_that_are_noted",
    ),
    Mutant(
        "sqlite: one place is not noted",
        _EVENTS,
        "SELECT chain, seq, number FROM event WHERE number > (SELECT number FROM placed) ORDER",
        "SELECT chain, seq, number FROM event WHERE number > 1 + (SELECT number FROM placed) ORDER",
        "every_event_is_in_its_place",
    ),
    Mutant(
        "sqlite: places are not compared",
        "stores/sqlite.py",
        "if len(counts) > 1 else []",
        "if False else []",
        "verify_compares_places",
    ),
    Mutant("repeats: after a freeze", "stores/parts.py", "self.patterns.clear()", "pass", "settings_changed"),
    Mutant(
        "repeats: beyond the end of a period",
        _REPEATS,
        "if not pattern.since <= now < pattern.until:",
        "if False:",
        "counts_in_the_period",
    ),
    Mutant(
        "repeats: before the beginning of a period",
        _REPEATS,
        "if not pattern.since <= now < pattern.until:",
        "if not now < pattern.until:",
        "counts_in_the_period",
    ),
    Mutant(
        "repeats: leases that have ended",
        _REPEATS,
        "if not held.soonest.get(name, _LONG_AGO) >= now:",
        "if False:",
        "what_the_rules_would_say",
    ),
    Mutant(
        "repeats: their own leases",
        _REPEATS,
        "if lease < held.soonest[name]:",
        "if False:",
        "the_lease_of_a_repeat_ends",
    ),
    Mutant(
        "repeats: budgets at some order", _REPEATS, "budget.rule != SOME", "True", "budgets_at_some_order_are_asked"
    ),
    Mutant(
        "repeats: what is left of a block", _REPEATS, "= min(amount, ", "= max(amount, ", "what_the_rules_would_say"
    ),
    Mutant(
        "balances: what was committed is not widened", "state.py", "self._committed *= factor", "pass", "sum_of_frac"
    ),
    Mutant("balances: a cap is not widened", "state.py", "self._cap * factor", "self._cap", "sum_of_fractions"),
    Mutant(
        "balances: units rounded down",
        "state.py",
        "total = -((-(self._committed + self._reserved) << bits) //",
        "total = (((self._committed + self._reserved) << bits) //",
        "sum_of_fractions",
    ),
    Mutant("requests: True is a lease", "ledger.py", "type(lease) is float and ", "", "what_is_not_a_repeat"),
    Mutant("group commit: answers before the commit", "stores/grouped.py", _DECIDED, _EARLY, "after_its_commit"),
    Mutant(
        "group commit: after a fork",
        "stores/grouped.py",
        "if self._process != os.getpid():",
        "if False:",
        "where_it_does_not_go",
    ),
    Mutant(
        "pool: connections shared with a fork",
        "stores/pool.py",
        "self._lent.append(self._idle)\n        self._idle = []",
        "pass",
        "forked_child",
    ),
)
