/** One attempt: params in, the function, a result or a failure out. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type * as z from "zod";
import { reasonOf, TaskFailed, TaskTerminalError } from "./errors.ts";
import { notJson } from "./json.ts";
import { busy, timersSince, workSince } from "./left.ts";
import type { Attempt, Context, Labels, Task } from "./task.ts";

/** What Perago asks of a program that serves: one such line for each attempt. */
export interface Asked {
  readonly execution_id: string;
  readonly workspace: string | null;
  readonly params: unknown;
  readonly attempt: Attempt;
  readonly tmp: string;
}

/** What the program answers. With `last` it asks to be ended, with all that still goes on in it. */
export type Answer = ({ readonly result: unknown } | { readonly error: string; readonly terminal: boolean }) & {
  readonly last?: true;
};

export type Event =
  | { readonly type: "progress"; readonly done: number; readonly total: number; readonly unit: string }
  | {
      readonly type: "metric";
      readonly kind: "gauge" | "histogram";
      readonly name: string;
      readonly value: number;
      readonly labels: Labels;
    }
  | { readonly type: "log"; readonly level: "debug" | "info" | "warning" | "error"; readonly message: string };

const MOST_RESULT_BYTES = 16_000_000;
const LONGEST_MESSAGE = 10_000;

/** Do one attempt; whatever the function throws, or returns, is an answer. */
export async function answer(task: Task, asked: Asked, tell: (event: Event) => void, signal: AbortSignal): Promise<Answer> {
  const before = busy();
  const settled = await settle(task, asked, tell, signal);
  // A request counts until the turn in which it was answered is over.
  await nextTurn();
  const work = workSince(before, asked.workspace);
  const found = "error" in settled ? settled : await checked(task, settled.returned, work);
  return work !== undefined || timersSince(before) ? { ...found, last: true } : found;
}

type Settled = { readonly returned: unknown } | { readonly error: string; readonly terminal: boolean };

async function settle(task: Task, asked: Asked, tell: (event: Event) => void, signal: AbortSignal): Promise<Settled> {
  try {
    const params = await task.params.safeParseAsync(asked.params);
    if (!params.success) return { error: `the params do not fit: ${problems(params.error)}`, terminal: true };
    return { returned: await task.body({ ...helpers(tell), ...given(asked), params: params.data, signal }) };
  } catch (thrown) {
    return failedBy(thrown);
  }
}

async function checked(task: Task, returned: unknown, work: string | undefined): Promise<Answer> {
  // A forgotten `await` would publish files that are not whole.
  if (work) return failed(`the task returned while something it began was still going on: ${work}; await it`);
  try {
    const result = await task.result.safeParseAsync(returned ?? {});
    return result.success ? told(result.data) : failed(`the result does not fit: ${problems(result.error)}`);
  } catch (thrown) {
    return failedBy(thrown);
  }
}

function failedBy(thrown: unknown) {
  // What the author threw on purpose needs no trace.
  if (!(thrown instanceof TaskFailed || thrown instanceof TaskTerminalError)) console.error(thrown);
  return { error: reasonOf(thrown) || "it failed without a reason", terminal: thrown instanceof TaskTerminalError };
}

function failed(error: string): Answer {
  return { error, terminal: false };
}

function told(result: unknown): Answer {
  const problem = notJson(result, "the result");
  if (problem) return failed(`${problem}, which JSON cannot say`);
  const size = Buffer.byteLength(JSON.stringify(result));
  if (size > MOST_RESULT_BYTES) return failed(`the result has ${size} bytes; write what is big into the workspace`);
  return { result };
}

function given(asked: Asked) {
  return { workspace: asked.workspace ?? undefined, attempt: asked.attempt, tmp: asked.tmp };
}

function helpers(tell: (event: Event) => void): Pick<Context<unknown, unknown>, "progress" | "metrics" | "log"> {
  const log = (level: "debug" | "info" | "warning" | "error") => (message: string) => {
    if (message) tell({ type: "log", level, message: String(message).slice(0, LONGEST_MESSAGE) });
  };
  const metric =
    (kind: "gauge" | "histogram") =>
    (name: string, value: number, labels: Labels = {}) =>
      tell({ type: "metric", kind, name, value, labels });
  return {
    progress: (done, total, unit = "") => tell({ type: "progress", done, total, unit }),
    metrics: { gauge: metric("gauge"), histogram: metric("histogram") },
    log: { debug: log("debug"), info: log("info"), warning: log("warning"), error: log("error") },
  };
}

function problems(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => [...path.map(String), message].join(": ")).join("; ");
}
