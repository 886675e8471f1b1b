/** Patterns mean what they mean in Perago; `tests/typescript` compares more of them with it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { matches } from "../src/paths.ts";

const FITS: readonly (readonly [string, string, boolean])[] = [
  ["a.txt", "a.txt", true],
  ["*.txt", "a.txt", true],
  ["*.txt", "b/a.txt", false],
  ["**/*.txt", "a.txt", true],
  ["**/*.txt", "b/c/a.txt", true],
  ["b/**", "b/c/a.txt", true],
  ["b/**", "b", false],
  ["**", "b/c", true],
  ["b/**/a.txt", "b/a.txt", true],
  ["b/**/a.txt", "c/b/a.txt", false],
  ["?.txt", "ab.txt", false],
  ["[ab].txt", "a.txt", true],
  ["[!ab].txt", "a.txt", false],
  ["[a-c]?", "b1", true],
  ["[]]", "]", true],
  ["[x", "[x", true],
  ["a.c", "abc", false],
  ["(a)+", "(a)+", true],
];

for (const [pattern, path, expected] of FITS) {
  test(`${pattern} ${expected ? "fits" : "does not fit"} ${path}`, () => {
    assert.equal(matches(pattern, path), expected);
  });
}
