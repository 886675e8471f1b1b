/** A test kit: run a task on a temporary directory, without Perago, lakeFS or Conductor. */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type * as z from "zod";
import { answer, type Event } from "./attempt.ts";
import { reasonOf } from "./errors.ts";
import type { Guard } from "./guards.ts";
import { checkPath, matches } from "./paths.ts";
import type { Task } from "./task.ts";

export type Status = "COMPLETED" | "FAILED" | "FAILED_WITH_TERMINAL_ERROR";

/** What a run came to. */
export interface Run<Result = unknown> {
  readonly status: Status;
  readonly completed: boolean;
  /** Why it failed; empty for a completed run. */
  readonly reason: string;
  /** Undefined for a run that failed. */
  readonly result: Result | undefined;
  /** The files of the repository afterwards, by their paths. A failed run changes none. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Progress, metrics and lines of the log, in their order. */
  readonly events: readonly Event[];
  /** Guards that look into tables: Perago asks them, this kit does not. */
  readonly unchecked: readonly string[];
}

export interface Given<Params = unknown> {
  readonly params?: Params;
  /** The files of the repository by their paths, those outside of the task's prefix too. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Aborting it is what a lost attempt does. */
  readonly signal?: AbortSignal;
  readonly retryCount?: number;
}

/** Run a task once. */
export async function runTask<Params extends z.ZodType, Result extends z.ZodType>(
  task: Task<Params, Result>,
  given: Given<z.input<Params>> = {},
): Promise<Run<z.output<Result>>> {
  const root = await mkdtemp(join(tmpdir(), "perago-"));
  try {
    return (await new Stage(task, root, given).run()) as Run<z.output<Result>>;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

class Stage {
  private readonly task: Task;
  private readonly workspace: string;
  private readonly tmp: string;
  private readonly given: Given;
  private readonly before: ReadonlyMap<string, Buffer>;
  private readonly events: Event[] = [];

  constructor(task: Task, root: string, given: Given) {
    this.task = task;
    this.workspace = join(root, "workspace");
    this.tmp = join(root, "tmp");
    this.given = given;
    const files = Object.entries(given.files ?? {});
    this.before = new Map(files.map(([path, content]) => [checkPath("files", path), Buffer.from(content)]));
  }

  async run(): Promise<Run> {
    await Promise.all([this.workspace, this.tmp].map((path) => mkdir(path)));
    const spec = this.task.declared.workspace;
    const input = new Map([...this.before].flatMap(([path, content]) => this.inside(path).map((name) => [name, content])));
    for (const [name, content] of input) {
      await mkdir(dirname(join(this.workspace, name)), { recursive: true });
      await writeFile(join(this.workspace, name), content);
    }
    // As Perago sends them: what JSON cannot say is not there.
    const params: unknown = JSON.parse(JSON.stringify(this.given.params ?? {}));
    const fitting = await this.task.params.safeParseAsync(params);
    const unmet = fitting.success && violation(spec?.pre, [...input.keys()]);
    if (unmet) return this.ended("FAILED_WITH_TERMINAL_ERROR", `pre guardrail: ${unmet}`);
    const id = randomUUID().replaceAll("-", "");
    const attempt = {
      workflow_instance_id: randomUUID(),
      task_id: randomUUID(),
      task: this.task.name,
      step: this.task.name,
      retry_count: this.given.retryCount ?? 0,
      execution_id: id,
      input_ref: spec ? "0".repeat(64) : null,
      deadline: null,
    };
    const asked = { execution_id: id, workspace: spec ? this.workspace : null, params, attempt, tmp: this.tmp };
    const signal = this.given.signal ?? new AbortController().signal;
    const found = await answer(this.task, asked, (event) => this.events.push(event), signal);
    if ("error" in found) {
      return found.terminal
        ? this.ended("FAILED_WITH_TERMINAL_ERROR", `body: TaskTerminalError: ${found.error}`)
        : this.ended("FAILED", `body: TaskFailed: ${found.error}`);
    }
    const output = await contents(this.workspace, (name) => this.isExcluded(name)).catch(reasonOf);
    if (typeof output === "string") return this.ended("FAILED", `scan: ${output}`);
    const lost = [...output.keys()].find((name) => !this.isIncluded(name));
    if (lost) return this.ended("FAILED", `scan: file '${lost}' is outside the task's include patterns and would be lost`);
    const broken = violation(spec?.post, [...output.keys()]);
    if (broken) return this.ended("FAILED", `post guardrail: ${broken}`);
    const result: unknown = JSON.parse(JSON.stringify(found.result));
    if (!spec || spec.readOnly) return this.ended("COMPLETED", "", result);
    const kept = [...this.before].filter(([path]) => !this.inside(path).length);
    const published = [...output].map(([name, content]): [string, Buffer] => [this.prefix + name, content]);
    return this.ended("COMPLETED", "", result, new Map([...kept, ...published].sort()));
  }

  private ended(status: Status, reason: string, result?: unknown, files = this.before): Run {
    const { pre = [], post = [] } = this.task.declared.workspace ?? {};
    const unchecked = [...pre, ...post].filter((guard) => !guard.violation).map((guard) => guard.name);
    return { status, completed: status === "COMPLETED", reason, result, files, events: this.events, unchecked };
  }

  /** What stands before the names of the workspace in the repository: nothing, or `in/`. */
  private get prefix(): string {
    const name = (this.task.declared.workspace?.prefix ?? "/").replace(/^\/+|\/+$/g, "");
    return name && `${name}/`;
  }

  /** The name that a path of the repository has in the workspace, if it is there. */
  private inside(path: string): string[] {
    if (!this.task.declared.workspace || !path.startsWith(this.prefix)) return [];
    const name = path.slice(this.prefix.length);
    return this.isIncluded(name) && !this.isExcluded(name) ? [name] : [];
  }

  private isIncluded(name: string): boolean {
    const include = this.task.declared.workspace?.include;
    return !include?.length || include.some((pattern) => matches(pattern, name));
  }

  private isExcluded(name: string): boolean {
    return Boolean(this.task.declared.workspace?.exclude?.some((pattern) => matches(pattern, name)));
  }
}

function violation(guards: readonly Guard[] | undefined, files: readonly string[]): string | undefined {
  return guards?.map((guard) => guard.violation?.(files)).find(Boolean);
}

/** Read a directory, or say why it cannot be published. */
async function contents(root: string, isExcluded: (name: string) => boolean): Promise<Map<string, Buffer> | string> {
  const found = new Map<string, Buffer>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (isExcluded(name)) continue;
    if (entry.isFile()) found.set(name, await readFile(path));
    else if (!entry.isDirectory()) return `'${name}' is neither a file nor a directory`;
  }
  return found;
}
