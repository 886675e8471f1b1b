/** The manifest of the tasks of a module: what Perago reads, without starting Node. */

import { TaskDefinitionError } from "./errors.ts";
import type { Guard } from "./guards.ts";
import type { JsonSchema, Task } from "./task.ts";
import { section, type Table } from "./toml.ts";

const MADE_BY = "# Made by: npx perago manifest";

/** Write the manifest; `command` starts the program that serves a task. */
export function manifest(file: string, tasks: Iterable<Task>, command: readonly string[]): string {
  const lines = [`${MADE_BY} ${file.replaceAll(/\s/g, " ")}`, "# Make it anew when the tasks have changed.", ""];
  for (const task of tasks) {
    const [, ...rest] = section("task", described(task, command));
    lines.push("[[task]]", ...rest);
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

/** Tell whether a text is a manifest that this package has made. */
export function isMade(text: string): boolean {
  return text.startsWith(MADE_BY);
}

function described(task: Task, command: readonly string[]): Table {
  const { workspace, controls, metrics } = task.declared;
  return {
    name: task.name,
    owner_email: task.declared.ownerEmail,
    description: task.declared.description,
    command: [...command, task.name],
    serve: true,
    env: task.declared.env,
    params: withoutNull(task, "params", task.paramsSchema),
    result: withoutNull(task, "result", task.resultSchema),
    workspace: workspace && {
      ...(snakeCase(workspace) as Table),
      pre: workspace.pre?.map(guardTable),
      post: workspace.post?.map(guardTable),
    },
    controls: controls && snakeCase(controls),
    metrics: metrics && snakeCase(metrics),
  };
}

function guardTable(guard: Guard): Table {
  return { [guard.name]: guard.given };
}

/** Name the keys of declared objects as a manifest does; guards have such names already. */
function snakeCase(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), snakeCase(value)]),
  );
}

/** TOML has no null. As a default or an example it says nothing; elsewhere it can be said as a type. */
function withoutNull(task: Task, which: string, schema: JsonSchema): Table {
  const clean = (value: unknown, path: string): unknown => {
    if (value === null) {
      throw new TaskDefinitionError(`task '${task.name}': ${path} is null, which a manifest cannot say; write z.null() as a type`);
    }
    if (Array.isArray(value)) return value.map((each, index) => clean(each, `${path}.${index}`));
    if (typeof value !== "object") return value;
    const kept = Object.entries(value).filter(([key, each]) => !(NOTES.has(key) && JSON.stringify(each).includes("null")));
    return Object.fromEntries(kept.map(([key, each]) => [key, clean(each, `${path}.${key}`)]));
  };
  return clean(schema, which) as Table;
}

const NOTES = new Set(["default", "examples"]);
