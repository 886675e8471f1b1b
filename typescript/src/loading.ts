/** Import a module and find the tasks that it exports. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { TaskDefinitionError } from "./errors.ts";
import { Task } from "./task.ts";

const OLDEST_FOR_TYPESCRIPT = [22, 18] as const;

/** Return the tasks of a module by their names. */
export async function tasksOf(file: string): Promise<Map<string, Task>> {
  const path = resolve(file);
  if (!existsSync(path)) throw new TaskDefinitionError(`there is no file ${file}; name the module that exports the tasks`);
  if (/\.[cm]?ts$/.test(path) && !readsTypeScript(process.versions.node)) {
    throw new TaskDefinitionError(
      `Node ${process.version} does not run TypeScript; use ${OLDEST_FOR_TYPESCRIPT.join(".")} or later, ` +
        `or compile ${file} and name the .js file`,
    );
  }
  const exported: unknown[] = Object.values(await imported(file, path));
  const tasks = new Map<string, Task>();
  for (const task of new Set(exported.filter((each) => each instanceof Task))) {
    if (tasks.has(task.name)) {
      throw new TaskDefinitionError(`${file} exports two tasks named '${task.name}'; rename one of them`);
    }
    tasks.set(task.name, task);
  }
  if (!tasks.size) throw new TaskDefinitionError(`${file} exports no task; write export const ... = task({...}, ...)`);
  return tasks;
}

async function imported(file: string, path: string): Promise<object> {
  try {
    return (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string };
    if (code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") {
      throw new TaskDefinitionError(`${file} has syntax that Node does not strip, such as enum; compile it and name the .js file`);
    }
    if (message?.includes("import statement outside a module")) {
      throw new TaskDefinitionError(`${file} is read as CommonJS; put "type": "module" into package.json, or name it .mts`);
    }
    throw error;
  }
}

/** Tell whether a version of Node runs TypeScript as it is. */
export function readsTypeScript(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldest, least] = OLDEST_FOR_TYPESCRIPT;
  return major > oldest || (major === oldest && minor >= least);
}
