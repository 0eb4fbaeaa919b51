#!/usr/bin/env bash
# Open one issue for the nights in FOLDER in which something got slower, or add to the one that is open:
#
#   issue.sh FOLDER
#
# `harness nightly` writes an issue.md only where something is slower. Needs gh, GH_TOKEN and GH_REPO.
set -euo pipefail
label=performance
title="Nightly: something got slower"

body=$(mktemp)
trap 'rm -f "$body"' EXIT
find "$1" -name issue.md | sort | while read -r part; do cat "$part"; echo; done >"$body"
[ -s "$body" ] || { echo "Nothing is slower."; exit 0; }
# An issue holds 65,536 characters; what is cut off is in the artifacts.
if [ "$(wc -c <"$body")" -gt 60000 ]; then
    head -c 59000 "$body" | sed '$d' >"$body.cut"
    mv "$body.cut" "$body"
    printf '\nThe rest is in the summaries of the run.\n' >>"$body"
fi
[ -z "${RUN_URL:-}" ] || printf 'Summaries, reports and logs: %s\n' "$RUN_URL" >>"$body"

number=$(gh issue list --label "$label" --state open --search "in:title \"$title\"" --json number --jq '.[0].number // empty')
if [ -n "$number" ]; then
    gh issue comment "$number" --body-file "$body"
else
    gh label create "$label" --description "A row is slower than before" --color D93F0B --force
    gh issue create --title "$title" --label "$label" --body-file "$body"
fi
