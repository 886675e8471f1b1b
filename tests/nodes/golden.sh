#!/bin/sh
# The golden cases as a shell script.
set -eu
read_param() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$PERAGO_PARAMS"; }
result() { printf '%s' "$1" > "$PERAGO_RESULT"; }
text=$(read_param text)
case $(read_param do) in
  write) printf '%s' "$text" > out.txt ;;
  remove) rm in.txt ;;
  temporary) echo x > left.tmp ;;
  measure) echo '{"type": "metric", "name": "songs", "value": 3, "labels": {"kind": "flac"}}' >&"$PERAGO_EVENTS" ;;
  fail) echo "no song" >&2; exit 1 ;;
  never) echo "no song" >&2; exit 65 ;;
  lie) result '{"size": "much"}'; exit 0 ;;
esac
result "{\"size\": ${#text}}"
