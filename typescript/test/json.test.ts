/** What JSON cannot say, and whole numbers that JavaScript cannot hold. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { exactJson, notJson } from "../src/json.ts";

test("what is JSON passes", () => {
  for (const value of [null, true, 1.5, "x", [1, [2]], { a: { b: undefined } }, new Date(0), new URL("http://a")]) {
    assert.equal(notJson(value), undefined);
  }
});

test("what is not is named with its place", () => {
  const around: Record<string, unknown> = {};
  around["self"] = around;
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ a: [Number.NaN] }, "it.a[0] is NaN"],
    [[undefined], "it[0] is of type undefined"],
    [{ a: 1n }, "it.a is of type bigint"],
    [{ a: new Set() }, "it.a is a Set"],
    [{ a: () => 1 }, "it.a is of type function"],
    [around, "it.self contains itself"],
  ];
  for (const [value, problem] of wrong) assert.equal(notJson(value), problem);
});

test("a number that would be another one is refused", () => {
  const exact = exactJson('{"a": [1, 0.1, 1e300, -9007199254740991]}');
  assert.deepEqual(exact, { value: { a: [1, 0.1, 1e300, -9007199254740991] }, problem: undefined });
  const { problem } = exactJson('{"id": 12345678901234567}');
  assert.match(problem ?? "", /^id is 12345678901234567, which JavaScript cannot hold exactly/);
});
