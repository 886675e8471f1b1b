#!/bin/sh
# One blank between two words, none at the end of a line. It knows nothing of Perago.
set -e
mkdir -p lyrics
for song in heard/*.txt; do
  tr -s ' ' <"$song" | sed 's/ *$//' >"lyrics/$(basename "$song")"
done
