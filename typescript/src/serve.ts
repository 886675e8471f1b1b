/** The program that Perago starts: it does one attempt after the other for one task. */

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { answer, type Answer, type Asked, type Event } from "./attempt.ts";
import { reasonOf, TaskDefinitionError } from "./errors.ts";
import { exactJson } from "./json.ts";
import { tasksOf } from "./loading.ts";
import type { Task } from "./task.ts";

type Line = Asked | { readonly cancel: string };

/** How Node says that an `await` at the top of a module never ends. */
const UNSETTLED = 13;

/** Serve a task of a module until Perago closes the descriptor of attempts. */
export async function serve(file: string, name: string): Promise<void> {
  process.on("uncaughtException", (error) => {
    console.error(error);
    lastWords(`nothing caught this: ${reasonOf(error)}`);
    process.exit(1);
  });
  process.on("exit", (code) => {
    if (code === UNSETTLED) lastWords(`${file} waits for something that never comes`);
  });
  const [attempts, answers, events] = ["PERAGO_ATTEMPTS", "PERAGO_ANSWERS", "PERAGO_EVENTS"].map(descriptor);
  const task = (await tasksOf(file)).get(name);
  if (!task) throw new TaskDefinitionError(`${file} has no task '${name}' any more; make the manifest anew`);
  new Server(task, attempts as number, answers as number, events as number).start();
}

let isSaid = false;

/** The last line of standard error is the reason that people read; the first that is known is it. */
function lastWords(text: string): void {
  if (isSaid) return;
  isSaid = true;
  writeSync(process.stderr.fd, `${text}\n`);
}

function descriptor(variable: string): number {
  const number = Number(process.env[variable] ?? "x");
  if (Number.isInteger(number)) return number;
  throw new TaskDefinitionError(`${variable} is not set: Perago starts this program, as in perago run tasks.toml:NAME`);
}

class Server {
  private readonly task: Task;
  private readonly input: Socket;
  private readonly answers: number;
  private readonly events: number;
  private running: { readonly id: string; readonly controller: AbortController } | undefined;
  private rest = "";

  constructor(task: Task, attempts: number, answers: number, events: number) {
    this.task = task;
    this.input = new Socket({ fd: attempts, readable: true, writable: false });
    this.answers = answers;
    this.events = events;
  }

  start(): void {
    this.input.setEncoding("utf8");
    this.input.on("data", (text: string) => this.take(text));
    // Perago has ended, or wants this program to end: nothing that still runs is wanted.
    this.input.on("end", () => process.exit(0));
    process.on("exit", () => {
      if (this.running) lastWords("the task ended the process; return a result or throw an error instead");
    });
  }

  private take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.hear(line);
  }

  private hear(text: string): void {
    const { value, problem } = exactJson(text);
    const line = value as Line;
    if (!("cancel" in line)) void this.attempt(line, problem);
    else if (line.cancel === this.running?.id) this.running.controller.abort();
  }

  private async attempt(asked: Asked, problem: string | undefined): Promise<void> {
    const running = { id: asked.execution_id, controller: new AbortController() };
    this.running = running;
    const tell = (event: Event): void => {
      // What a function says after its attempt is nobody's.
      if (this.running === running) say(this.events, { execution_id: running.id, ...event });
    };
    const found = problem ? inexact(problem) : await answer(this.task, asked, tell, running.controller.signal);
    // What goes on must neither change the workspace nor meet the next attempt: Perago ends this program
    // before it looks at the workspace, and starts another one.
    if (found.last) tell({ type: "log", level: "warning", message: LEFT });
    this.running = undefined;
    say(this.answers, { execution_id: running.id, ...found });
  }
}

const LEFT = "the task left timers or other work behind; the program is ended with it and started again";

/** Refuse params that are other numbers once JavaScript has read them. */
function inexact(problem: string): Answer {
  return { error: `the params do not fit: ${problem}`, terminal: true };
}

function say(descriptor: number, words: object): void {
  let bytes = Buffer.from(`${JSON.stringify(words)}\n`);
  while (bytes.length) bytes = bytes.subarray(writeSync(descriptor, bytes));
}
