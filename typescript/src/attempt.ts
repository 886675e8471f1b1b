/** One attempt: params in, the function, a result or a failure out. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type * as z from "zod";
import { reasonOf, TaskFailed, TaskTerminalError } from "./errors.ts";
import type { Attempt, Labels, Task } from "./task.ts";

/** What Perago asks of a program that serves: one such line for each attempt. */
export interface Asked {
  readonly execution_id: string;
  readonly workspace: string | null;
  readonly params: unknown;
  readonly attempt: Attempt;
  readonly tmp: string;
}

export type Answer =
  | { readonly result: unknown }
  | { readonly error: string; readonly terminal: boolean };

export type Event =
  | { readonly type: "progress"; readonly done: number; readonly total: number | null; readonly unit: string }
  | {
      readonly type: "metric";
      readonly kind: "gauge" | "histogram";
      readonly name: string;
      readonly value: number;
      readonly labels: Labels;
    }
  | { readonly type: "log"; readonly level: "debug" | "info" | "warning" | "error"; readonly message: string };

/** Do one attempt; whatever the function throws is an answer, too. */
export async function answer(task: Task, asked: Asked, tell: (event: Event) => void, signal: AbortSignal): Promise<Answer> {
  const params = task.params.safeParse(asked.params);
  if (!params.success) return { error: `the params do not fit: ${problems(params.error)}`, terminal: true };
  const before = fileOperations();
  let returned: unknown;
  try {
    returned = await task.body({
      workspace: asked.workspace ?? undefined,
      params: params.data,
      attempt: asked.attempt,
      tmp: asked.tmp,
      progress: (done, total, unit = "") => tell({ type: "progress", done, total: total ?? null, unit }),
      metrics: {
        gauge: (name, value, labels = {}) => tell({ type: "metric", kind: "gauge", name, value, labels }),
        histogram: (name, value, labels = {}) => tell({ type: "metric", kind: "histogram", name, value, labels }),
      },
      log: {
        debug: (message) => tell({ type: "log", level: "debug", message }),
        info: (message) => tell({ type: "log", level: "info", message }),
        warning: (message) => tell({ type: "log", level: "warning", message }),
        error: (message) => tell({ type: "log", level: "error", message }),
      },
      signal,
    });
  } catch (thrown) {
    // What the author threw on purpose needs no trace.
    const meant = thrown instanceof TaskFailed || thrown instanceof TaskTerminalError;
    if (!meant) console.error(thrown instanceof Error ? thrown.stack : thrown);
    return { error: reasonOf(thrown) || "it failed without a reason", terminal: thrown instanceof TaskTerminalError };
  }
  // A request counts until the turn in which it was answered is over.
  await nextTurn();
  // A forgotten `await` would publish a file that is not whole.
  if (fileOperations() > before) {
    return { error: "the task returned while files were still being read or written; await all of them", terminal: false };
  }
  const result = task.result.safeParse(returned ?? {});
  if (!result.success) return { error: `the result does not fit: ${problems(result.error)}`, terminal: false };
  return { result: result.data };
}

/** Count the reads and writes that this process has begun and not ended. */
export function fileOperations(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith("FSReq")).length;
}

function problems(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => [...path.map(String), message].join(": ")).join("; ");
}
