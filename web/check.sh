#!/usr/bin/env bash
# Build the report's and the service's page anew and compare them with what is in the Python package. Skipped where node is missing, or cannot fetch packages.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
    echo "web: node is missing, so the page is not built anew (a test compares the hash of its sources)."
    exit 0
fi
if [ ! -d node_modules ] && ! npm ci --no-audit --no-fund --silent; then
    if npm ping --silent > /dev/null 2>&1; then
        echo "web: the packages of the page cannot be installed; fix web/package-lock.json." >&2
        exit 1
    fi
    rm -rf node_modules
    echo "web: packages cannot be fetched here, so the page is not built anew."
    exit 0
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npx --no-install tsc --noEmit
node build.mjs --out "$built"
for file in report/page/report.js report/page/report.css server/page/app.js server/page/app.css; do
    if ! cmp -s "$built/$file" "../src/crowdveil/$file"; then
        echo "web: $file is not what its source builds; run make web." >&2
        exit 1
    fi
done
