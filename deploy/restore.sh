#!/usr/bin/env bash
# Restore a backup: restore.sh ARCHIVE DATA_DIR
#
# DATA_DIR must be empty or missing, and the service stopped. With CROWDVEIL_DATABASE_URL the database is PostgreSQL: it must be
# empty, and pg_restore is needed. Nothing is put in place unless the archive is whole.
set -euo pipefail
umask 077

if [ $# -ne 2 ]; then
    echo "usage: restore.sh ARCHIVE DATA_DIR" >&2
    exit 2
fi
archive=$1 data=$2
[ -f "$archive" ] || { echo "restore: there is no such archive." >&2; exit 2; }
if [ -d "$data" ] && [ -n "$(ls -A "$data")" ]; then
    echo "restore: the data directory is not empty; move it away first, so that nothing is mixed or lost." >&2
    exit 2
fi
mkdir -p "$(dirname "$data")"
work=$(mktemp -d "$(dirname "$data")/.restore-XXXXXXXX")
trap 'rm -rf "$work"' EXIT
tar --extract --file="$archive" --directory="$work" --no-same-owner
[ -d "$work/jobs" ] || { echo "restore: the archive is not a backup of crowdveil." >&2; exit 2; }

if [ -f "$work/database.pgdump" ]; then
    [ -n "${CROWDVEIL_DATABASE_URL:-}" ] || { echo "restore: the backup is of PostgreSQL; set CROWDVEIL_DATABASE_URL." >&2; exit 2; }
    pg_restore --no-owner --single-transaction --exit-on-error --dbname="$CROWDVEIL_DATABASE_URL" "$work/database.pgdump"
    rm "$work/database.pgdump"
elif [ ! -f "$work/jobs.sqlite" ]; then
    echo "restore: the archive holds no database." >&2
    exit 2
fi
mkdir -p "$work/incoming"
[ -d "$data" ] && rmdir "$data"
mv "$work" "$data"
trap - EXIT
chmod 700 "$data"
echo "$data: restored; start the service, and ask GET /ready"
