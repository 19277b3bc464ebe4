#!/bin/sh
# The database's password comes from a file, so that it stands in no list of processes and in no configuration.
set -eu
if [ -r /run/secrets/db_password ]; then
    PGPASSWORD="$(cat /run/secrets/db_password)"
    export PGPASSWORD
fi
exec privloss "$@"
