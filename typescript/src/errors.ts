/** The errors a task may throw, and the one a wrong declaration throws at import. */

/** The task could not do its work this time; a retry may succeed. */
export class TaskFailed extends Error {
  override readonly name: string = "TaskFailed";
}

/** The task can never succeed on this input; it is not tried again. */
export class TaskTerminalError extends Error {
  override readonly name: string = "TaskTerminalError";
}

/** A declaration is wrong; the message says what to write instead. */
export class TaskDefinitionError extends Error {
  override readonly name: string = "TaskDefinitionError";
}

/** Say what was thrown in one line; what is not an Error is shown as it is. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown instanceof TaskFailed || thrown instanceof TaskTerminalError) return thrown.message;
  return thrown.message ? `${thrown.name}: ${thrown.message}` : thrown.name;
}
