#!/usr/bin/env bash
# Back up a service while it runs: backup.sh DATA_DIR TARGET_FOLDER [KEEP]
#
# Writes TARGET_FOLDER/crowdveil-YYYYMMDDTHHMMSSZ.tar (mode 0600) with the database, tokens, job rows, results, and the uploads of
# jobs that are still queued: it holds original data, so encrypt it before it leaves the machine. The newest KEEP (14) are kept.
# The database is copied before the files: a job that ends meanwhile is then an orphan in the copy, and never a row without files.
# With CROWDVEIL_DATABASE_URL the database is PostgreSQL, and pg_dump is needed.
set -euo pipefail
umask 077

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: backup.sh DATA_DIR TARGET_FOLDER [KEEP]" >&2
    exit 2
fi
data=$1 target=$2 keep=${3:-14}
[ -d "$data/jobs" ] || { echo "backup: $data is not a data directory of crowdveil (it has no folder jobs); name another." >&2; exit 2; }
[[ $keep =~ ^[1-9][0-9]*$ ]] || { echo "backup: wanted a number of backups to keep of at least 1, but got another word." >&2; exit 2; }
mkdir -p "$target"
work=$(mktemp -d "$target/.backup-XXXXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -n "${CROWDVEIL_DATABASE_URL:-}" ]; then
    pg_dump --format=custom --no-owner --file="$work/database.pgdump" --dbname="$CROWDVEIL_DATABASE_URL"
else
    # SQLite's own online backup: a copy of the file alone would miss what is in its log.
    python3 - "$data/jobs.sqlite" "$work/jobs.sqlite" <<'PY'
import sqlite3
import sys
from contextlib import closing

with closing(sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)) as live, closing(sqlite3.connect(sys.argv[2])) as copy:
    live.backup(copy)
    if copy.execute("PRAGMA integrity_check").fetchone() != ("ok",):
        sys.exit("backup: the copy of the database is damaged.")
PY
fi

archive=$work/archive.tar
# Exit code 1 of tar: a file changed or went while it was read, which happens while jobs run.
tar --create --file="$archive" --directory="$data" --warning=no-file-changed --warning=no-file-removed --ignore-failed-read \
    --exclude='./jobs.sqlite*' --exclude='./incoming/*' --exclude='./uploads' --exclude='./workers/*' --exclude='*.backup' . || [ $? -eq 1 ]
(cd "$work" && tar --append --file=archive.tar ./jobs.sqlite 2>/dev/null || tar --append --file=archive.tar ./database.pgdump)

name=crowdveil-$(date -u +%Y%m%dT%H%M%SZ).tar
sync "$archive"
mv "$archive" "$target/$name"
find "$target" -maxdepth 1 -type f -name 'crowdveil-*.tar' -printf '%f\n' | sort -r | tail -n +$((keep + 1)) | while read -r old; do rm -f "$target/$old"; done
echo "$target/$name"
