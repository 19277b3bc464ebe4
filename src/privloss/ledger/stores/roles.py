"""Who may do what with a ledger on PostgreSQL: a script for the one who administers the database.

The owner owns the tables, and brings them to a new release's schema. A writer has what commands need: events can be
added, not changed; of other rows only the columns that commands write. An auditor reads, which is all `verify` needs.
"""

from __future__ import annotations

from privloss.errors import InvalidInput
from privloss.ledger.names import name

TABLES = ("meta", "dataset", "balance", "analysis", "open_lease", "event", "token", "session")
# every privilege that a command uses, and no other; FOR UPDATE needs that some column may be updated
_WRITER = (
    ("INSERT", "event"),
    ("INSERT, UPDATE (frozen, settings, seq, head)", "dataset"),
    ("INSERT, DELETE, UPDATE (cap, committed, reserved, total_units, cap_units)", "balance"),
    ("INSERT, UPDATE (state, lease, run)", "analysis"),
    ("INSERT, DELETE, UPDATE (lease)", "open_lease"),
    ("INSERT, UPDATE (revoked, used)", "token"),
    ("INSERT, DELETE, UPDATE (seen)", "session"),
)


def script(owner: str, writer: str, auditor: str, schema: str = "public") -> str:
    """SQL that makes the roles if they are not there, and gives each what it needs and nothing more."""
    roles = {"owner": owner, "writer": writer, "auditor": auditor}
    if len(set(roles.values())) < len(roles):
        raise InvalidInput(f"roles = {', '.join(roles.values())}: must be three different names.")
    place = _quoted("schema", schema)
    owns, writes, reads = (_quoted(what, each) for what, each in roles.items())
    tables = ", ".join(f"{place}.{table}" for table in TABLES)
    lines = [
        "-- run it as a superuser in the ledger's database; then give each role a password: \\password NAME",
        "-- run it again after the owner has opened the ledger with a new release",
        *(_made(what, each) for what, each in roles.items()),
        f"GRANT USAGE, CREATE ON SCHEMA {place} TO {owns};",
        *(f"ALTER TABLE {place}.{table} OWNER TO {owns};" for table in TABLES),
        f"ALTER FUNCTION {place}.event_append_only() OWNER TO {owns};",
        f"REVOKE CREATE ON SCHEMA {place} FROM PUBLIC, {writes}, {reads};",
        f"REVOKE ALL ON {tables} FROM PUBLIC, {writes}, {reads};",
        f"GRANT USAGE ON SCHEMA {place} TO {writes}, {reads};",
        f"GRANT SELECT ON {tables} TO {writes}, {reads};",
        *(f"GRANT {rights} ON {place}.{table} TO {writes};" for rights, table in _WRITER),
    ]
    return "\n".join(lines)


def _quoted(what: str, value: str) -> str:
    """A name as an SQL identifier."""
    checked = name(what, value)
    if len(checked.encode()) > 63:
        raise InvalidInput(f"{what} = {value!r}: PostgreSQL's names have at most 63 bytes.")
    return '"' + checked.replace('"', '""') + '"'


def _made(what: str, value: str) -> str:
    """Its text is an SQL string inside a block whose quotes it must not end."""
    text = value.replace("'", "''")
    if "$privloss$" in value:
        raise InvalidInput(f"{what} = {value!r}: must not hold $privloss$.")
    make = f"CREATE ROLE {_quoted(what, value)} LOGIN"
    asked = f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{text}') THEN {make}; END IF;"
    return f"DO $privloss$ BEGIN {asked} END $privloss$;"
