/** A task behaves in the test kit as it does under Perago. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import * as z from "zod";
import { forbidGlob, requireFile, requireRows, task, TaskFailed, TaskTerminalError } from "../src/index.ts";
import { runTask } from "../src/testing.ts";

const FILES = { "in/a.txt": "abc", "other.txt": "other" };

const upper = task(
  {
    name: "upper",
    ownerEmail: "text@example.com",
    params: z.object({ do: z.string().default("write") }),
    result: z.looseObject({ size: z.int() }),
    workspace: { prefix: "/in", pre: [requireFile("a.txt")], post: [forbidGlob("*.tmp"), requireRows("t")], exclude: ["x/**"] },
  },
  async ({ workspace, params, progress, metrics, log, signal, attempt }) => {
    const text = await readFile(join(workspace, "a.txt"), "utf8");
    const out = join(workspace, "b.txt");
    switch (params.do) {
      case "write":
        await writeFile(out, text.toUpperCase());
        break;
      case "remove":
        await rm(join(workspace, "a.txt"));
        break;
      case "temporary":
        await writeFile(join(workspace, "b.tmp"), "");
        break;
      case "link":
        await symlink("a.txt", out);
        break;
      case "tell":
        progress(1, 2, "files");
        metrics.gauge("size", 3, { kind: "text" });
        log.info(attempt.task);
        break;
      case "fail":
        throw new TaskFailed("no song");
      case "never":
        throw new TaskTerminalError("no song");
      case "throw":
        throw new RangeError("too far");
      case "forget":
        void writeFile(out, "x".repeat(10_000_000));
        break;
      case "open":
        createWriteStream(out).write("half");
        await sleep(20);
        break;
      case "child":
        spawn("sleep", ["0.3"]);
        break;
      case "worker":
        new Worker("setTimeout(() => {}, 300)", { eval: true });
        break;
      case "nan":
        return { size: 1, more: Number.NaN };
      case "map":
        return { size: 1, more: new Map() };
      case "cause":
        throw new Error("outer", { cause: new Error("inner\n  lines") });
      case "object":
        throw { code: 5 };
      case "lie":
        return { size: "much" } as unknown as { size: number };
      case "wait":
        await new Promise((_, refuse) => signal.addEventListener("abort", () => refuse(new TaskFailed("not wanted"))));
    }
    return { size: text.length };
  },
);

const text = (files: ReadonlyMap<string, Buffer>) => Object.fromEntries([...files].map(([path, content]) => [path, String(content)]));

test("what is written is published below the prefix, and nothing else changes", async () => {
  const run = await runTask(upper, { files: FILES });
  assert.equal(run.reason, "");
  assert.deepEqual(run.result, { size: 3 });
  assert.deepEqual(text(run.files), { "in/a.txt": "abc", "in/b.txt": "ABC", "other.txt": "other" });
  assert.deepEqual(run.unchecked, ["require_rows"]);
});

test("what is removed is gone", async () => {
  const run = await runTask(upper, { params: { do: "remove" }, files: FILES });
  assert.deepEqual(text(run.files), { "other.txt": "other" });
});

const FAILURES: readonly (readonly [string, string, RegExp])[] = [
  ["fail", "FAILED", /^body: TaskFailed: no song$/],
  ["never", "FAILED_WITH_TERMINAL_ERROR", /^body: TaskTerminalError: no song$/],
  ["throw", "FAILED", /^body: TaskFailed: RangeError: too far$/],
  ["forget", "FAILED", /still going on: a file operation.*; await it$/],
  ["open", "FAILED", /still going on: b.txt, which is open for writing; await it$/],
  ["child", "FAILED", /still going on: a child process; await it$/],
  ["worker", "FAILED", /still going on: a worker thread; await it$/],
  ["nan", "FAILED", /the result.more is NaN, which JSON cannot say/],
  ["map", "FAILED", /the result.more is a Map, which JSON cannot say/],
  ["cause", "FAILED", /^body: TaskFailed: Error: outer \(Error: inner lines\)$/],
  ["object", "FAILED", /^body: TaskFailed: \{ code: 5 \}$/],
  ["lie", "FAILED", /the result does not fit: size: /],
  ["temporary", "FAILED", /^post guardrail: 'b.tmp' matches/],
  ["link", "FAILED", /^scan: 'b.txt' is neither a file nor a directory/],
];

for (const [what, status, reason] of FAILURES) {
  test(`${what}: ${status}, and nothing is changed`, async () => {
    const run = await runTask(upper, { params: { do: what }, files: FILES });
    assert.equal(run.status, status);
    assert.match(run.reason, reason);
    assert.deepEqual(text(run.files), FILES);
  });
}

test("params that do not fit are terminal, and so is an input that breaks a guard", async () => {
  const wrong = await runTask(upper, { params: { do: 1 } as unknown as { do: string }, files: FILES });
  assert.equal(wrong.status, "FAILED_WITH_TERMINAL_ERROR");
  assert.match(wrong.reason, /the params do not fit: do: /);
  const missing = await runTask(upper, { files: { "other.txt": "" } });
  assert.equal(missing.status, "FAILED_WITH_TERMINAL_ERROR");
  assert.equal(missing.reason, "pre guardrail: file 'a.txt' is missing");
});

test("what a task tells is kept", async () => {
  const { events } = await runTask(upper, { params: { do: "tell" }, files: FILES });
  assert.deepEqual(events, [
    { type: "progress", done: 1, total: 2, unit: "files" },
    { type: "metric", kind: "gauge", name: "size", value: 3, labels: { kind: "text" } },
    { type: "log", level: "info", message: "upper" },
  ]);
});

test("a lost attempt aborts its signal", async () => {
  const controller = new AbortController();
  const running = runTask(upper, { params: { do: "wait" }, files: FILES, signal: controller.signal });
  setTimeout(() => controller.abort(), 20);
  assert.match((await running).reason, /not wanted/);
});

test("a task without a workspace has none, and one that only reads changes nothing", async () => {
  const without = task({ name: "a", ownerEmail: "a@example.com" }, ({ workspace }) => ({ none: workspace === undefined }));
  assert.deepEqual((await runTask(without, { files: FILES })).result, { none: true });
  const reading = task({ name: "b", ownerEmail: "a@example.com", workspace: { readOnly: true } }, async ({ workspace }) => {
    await writeFile(join(workspace, "new.txt"), "");
  });
  assert.deepEqual(text((await runTask(reading, { files: FILES })).files), FILES);
});

test("params and results have the types that were declared", async () => {
  const run = await runTask(upper, { params: { do: "write" }, files: FILES });
  const size: number | undefined = run.result?.size;
  assert.equal(size, 3);
  // @ts-expect-error: no such param
  await runTask(upper, { params: { doo: "write" }, files: FILES });
});

test("files lie in the repository", async () => {
  await assert.rejects(runTask(upper, { files: { "../out.txt": "" } }), /the path has the segment '..'/);
});
