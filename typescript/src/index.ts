/** Write Perago tasks in TypeScript. */

export type { MetricSpec, TaskControls, WorkspaceSpec } from "./declaration.ts";
export { TaskDefinitionError, TaskFailed, TaskTerminalError } from "./errors.ts";
export {
  forbidGlob,
  Guard,
  maxDrift,
  requireDir,
  requireFile,
  requireForeignKey,
  requireGlob,
  requireNotNull,
  requireRows,
  requireSchema,
  requireUnique,
  requireValues,
} from "./guards.ts";
export { type Attempt, type Context, type Labels, type Log, type Metrics, Task, task, type TaskOptions } from "./task.ts";
