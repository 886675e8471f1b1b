/** The manifest says what was declared, in TOML 1.0. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { requireFile, requireSchema, task } from "../src/index.ts";
import { isMade, manifest } from "../src/manifest.ts";
import { inline, section } from "../src/toml.ts";

const GIVEN = { name: "upper", ownerEmail: "text@example.com" };

test("values are written on one line", () => {
  assert.equal(inline("a \"b\" \\ \n\x7f"), '"a \\"b\\" \\\\ \\n\\u007F"');
  assert.equal(inline([1, 2.5, 1e21, 1e-7, -0.5]), "[1, 2.5, 1e21, 1e-7, -0.5]");
  assert.equal(inline(2 ** 53), "9007199254740992.0");
  assert.equal(inline({ a: true, "b c": {} }), '{ a = true, "b c" = {} }');
  assert.throws(() => inline(null), /null cannot be written/);
  assert.throws(() => inline(Number.NaN), /NaN cannot be written/);
});

test("an empty table is there", () => {
  assert.deepEqual(section("task.workspace", {}), ["[task.workspace]", ""]);
});

test("names are those of a manifest", () => {
  const made = task(
    {
      ...GIVEN,
      env: ["PROFILE"],
      workspace: { readOnly: true, pre: [requireFile("a")], post: [requireSchema("t", { userId: "bigint" })] },
      controls: { retry: { delaySeconds: 1 }, publishBudget: budget },
    },
    () => ({}),
  );
  const text = manifest("src/tasks.ts", [made], ["node", "{here}/x.js"]);
  assert.ok(isMade(text));
  for (const line of [
    "[[task]]",
    'command = ["node", "{here}/x.js", "upper"]',
    "serve = true",
    'env = ["PROFILE"]',
    "read_only = true",
    'pre = [{ require_file = { path = "a" } }]',
    'post = [{ require_schema = { table = "t", columns = { userId = "bigint" } } }]',
    "[task.controls.retry]",
    "delay_seconds = 1",
    "observed_merge_p99_seconds = 1",
  ]) {
    assert.ok(text.split("\n").includes(line), `${line} is not in\n${text}`);
  }
});

const budget = {
  observedMergeP99Seconds: 1,
  safetyMarginSeconds: 1,
  lakefsMergeTimeoutSeconds: 5,
  conductorCompletionTimeoutSeconds: 5,
  workerShutdownGraceSeconds: 30,
  heartbeatIntervalSeconds: 5,
};

test("null is left out where it says nothing, and refused where it does", () => {
  const nullable = task({ ...GIVEN, params: z.object({ a: z.string().nullable().default(null) }) }, () => ({}));
  assert.ok(!manifest("x.ts", [nullable], []).includes("default"));
  const literal = task({ ...GIVEN, params: z.object({ a: z.literal([null, "x"]) }) }, () => ({}));
  assert.throws(() => manifest("x.ts", [literal], []), /params.properties.a.enum.0 is null, which a manifest cannot say/);
});

test("what only Zod can say is left to Zod", () => {
  const params = z.object({
    a: z.string().regex(/^\p{L}+$/u),
    b: z.coerce.number(),
    c: z.number().multipleOf(0.1),
    d: z.string().catch("x"),
  });
  const text = manifest("x.ts", [task({ ...GIVEN, params }, () => ({}))], []);
  assert.ok(!/pattern|multipleOf|default/.test(text), text);
  assert.match(text, /\[task.params.properties.b\]\n\n/);
});

test("a union of objects, or an object with a name, is one", () => {
  const one = z.object({ kind: z.literal("a") }).meta({ id: "One" });
  task({ ...GIVEN, params: z.discriminatedUnion("kind", [one, z.object({ kind: z.literal("b") })]) }, () => ({}));
  task({ ...GIVEN, params: one }, () => ({}));
});
