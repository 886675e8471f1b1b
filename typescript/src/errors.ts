/** The errors a task may throw, and the one a wrong declaration throws at import. */

import { inspect } from "node:util";
import { branded } from "./brand.ts";

/** The task could not do its work this time; a retry may succeed. */
export class TaskFailed extends Error {
  override readonly name: string = "TaskFailed";
  static {
    branded(this, "TaskFailed");
  }
}

/** The task can never succeed on this input; it is not tried again. */
export class TaskTerminalError extends Error {
  override readonly name: string = "TaskTerminalError";
  static {
    branded(this, "TaskTerminalError");
  }
}

/** A declaration is wrong; the message says what to write instead. */
export class TaskDefinitionError extends Error {
  override readonly name: string = "TaskDefinitionError";
  static {
    branded(this, "TaskDefinitionError");
  }
}

const DEEPEST = 4;

/** Say what was thrown in one line, with its causes; it may be anything, also what cannot be shown. */
export function reasonOf(thrown: unknown, depth = 0): string {
  try {
    return oneLine(thrown instanceof Error ? errorReason(thrown, depth) : inspected(thrown));
  } catch {
    return "something that cannot be shown";
  }
}

function errorReason(error: Error, depth: number): string {
  const meant = error instanceof TaskFailed || error instanceof TaskTerminalError;
  const own = meant ? String(error.message) : [error.name, error.message].filter(Boolean).map(String).join(": ");
  if (depth === DEEPEST) return own;
  const first: unknown = error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
  return first === undefined ? own : `${own} (${reasonOf(first, depth + 1)})`;
}

function inspected(thrown: unknown): string {
  return typeof thrown === "string" ? thrown : inspect(thrown, { depth: 2, breakLength: Number.POSITIVE_INFINITY });
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*[\r\n]+\s*/g, " ");
}
