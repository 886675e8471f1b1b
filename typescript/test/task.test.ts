/** What may be declared, and how a mistake is told. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { forbidGlob, requireFile, requireGlob, requireNotNull, requireRows, task, TaskDefinitionError } from "../src/index.ts";

const GIVEN = { name: "upper", ownerEmail: "text@example.com" };
const nothing = () => ({});

test("a task needs no more than a name and an address", () => {
  const made = task(GIVEN, nothing);
  assert.equal(made.name, "upper");
  assert.equal(made.paramsSchema["type"], "object");
});

const WRONG: readonly (readonly [string, object, RegExp])[] = [
  ["a name with a colon", { ...GIVEN, name: "a:b" }, /name: use a printable name without ':'/],
  ["no name", { ownerEmail: "a@example.com" }, /^task: name: /],
  ["an address without @", { ...GIVEN, ownerEmail: "me" }, /task 'upper': ownerEmail: give an address such as/],
  ["an unknown key", { ...GIVEN, owner: "x" }, /'owner' is unknown; it knows name, ownerEmail/],
  ["an unknown key of the workspace", { ...GIVEN, workspace: { prefx: "/" } }, /workspace: 'prefx' is unknown; it knows prefix, pre/],
  ["a prefix that leaves the repository", { ...GIVEN, workspace: { prefix: "/../x" } }, /workspace.prefix: the prefix '\/..\/x' has/],
  ["a fence that does not exist", { ...GIVEN, workspace: { fence: "soft" } }, /workspace.fence: .*"head"/],
  ["a guard that is a text", { ...GIVEN, workspace: { pre: ["a.txt"] } }, /workspace.pre.0: this is not a guard/],
  ["a pattern with ** inside", { ...GIVEN, workspace: { include: ["a**"] } }, /'\*\*' must stand alone/],
  ["too many retries", { ...GIVEN, controls: { retry: { count: 11 } } }, /controls.retry.count: /],
  ["params that are no schema", { ...GIVEN, params: { a: 1 } }, /params: give a Zod schema/],
  ["params that are no object", { ...GIVEN, params: z.string() }, /params is not an object; wrap it/],
  ["a result that JSON cannot say", { ...GIVEN, result: z.object({ at: z.date() }) }, /result cannot be written as JSON Schema/],
  ["a variable that is none", { ...GIVEN, env: ["A B"] }, /env.0: give names of variables/],
];

for (const [what, given, message] of WRONG) {
  test(`${what} is refused at import`, () => {
    assert.throws(
      () => task(given as typeof GIVEN, nothing),
      (error: unknown) => error instanceof TaskDefinitionError && message.test(error.message),
    );
  });
}

test("a task without a function is refused", () => {
  assert.throws(() => task(GIVEN, undefined as unknown as () => undefined), /the second argument is not a function/);
});

test("guards are refused where they are written", () => {
  assert.throws(() => requireFile("../x"), /requireFile\("..\/x"\): the path has the segment '..'/);
  assert.throws(() => forbidGlob("/x"), /the pattern is absolute/);
  assert.throws(() => requireGlob("x", { minCount: 2, maxCount: 1 }), /2 to 1 is no range/);
  assert.throws(() => requireRows("t", { min: 0.5 }), /is no range/);
  assert.throws(() => requireNotNull("t", []), /are no columns/);
});

test("types: the function gets what was declared, and gives what was declared", () => {
  const params = z.object({ text: z.string().default("") });
  const result = z.object({ size: z.int() });
  task({ ...GIVEN, params, result, workspace: {} }, ({ params, workspace }) => {
    const text: string = params.text;
    const directory: string = workspace;
    return { size: text.length + directory.length };
  });
  // @ts-expect-error: a result of the wrong type
  task({ ...GIVEN, params, result }, () => ({ size: "much" }));
  // @ts-expect-error: no result at all
  task({ ...GIVEN, params, result }, () => undefined);
  // @ts-expect-error: without a declared workspace there is none
  task({ ...GIVEN, params }, ({ workspace }) => void workspace.length);
  // @ts-expect-error: a field that params do not have
  task({ ...GIVEN, params }, ({ params }) => void params.other);
  task(GIVEN, async () => undefined);
});
