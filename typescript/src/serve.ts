/** The program that Perago starts: it does one attempt after the other for one task. */

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { answer, type Asked, type Event } from "./attempt.ts";
import { reasonOf, TaskDefinitionError } from "./errors.ts";
import { tasksOf } from "./loading.ts";
import type { Task } from "./task.ts";

type Line = Asked | { readonly cancel: string };

/** Serve a task of a module until Perago closes the descriptor of attempts. */
export async function serve(file: string, name: string): Promise<void> {
  // The last line of standard error is the reason that people read.
  process.on("uncaughtException", (error) => {
    console.error(error instanceof Error ? error.stack : error);
    console.error(`nothing caught this: ${reasonOf(error)}`);
    process.exit(1);
  });
  const [attempts, answers, events] = ["PERAGO_ATTEMPTS", "PERAGO_ANSWERS", "PERAGO_EVENTS"].map(descriptor);
  const task = (await tasksOf(file)).get(name);
  if (!task) throw new TaskDefinitionError(`${file} has no task '${name}' any more; make the manifest anew`);
  new Server(task, attempts as number, answers as number, events as number).start();
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
  }

  private take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.hear(JSON.parse(line) as Line);
  }

  private hear(line: Line): void {
    if (!("cancel" in line)) void this.attempt(line);
    else if (line.cancel === this.running?.id) this.running.controller.abort();
  }

  private async attempt(asked: Asked): Promise<void> {
    const running = { id: asked.execution_id, controller: new AbortController() };
    this.running = running;
    const tell = (event: Event): void => {
      // What a function says after its attempt is nobody's.
      if (this.running === running) say(this.events, { execution_id: running.id, ...event });
    };
    const given = await answer(this.task, asked, tell, running.controller.signal);
    const isLeft = process.getActiveResourcesInfo().some((kind) => OF_AN_ATTEMPT.test(kind));
    if (isLeft) tell({ type: "log", level: "warning", message: LEFT });
    this.running = undefined;
    // Perago ends the program before it looks at the workspace, and starts another for the next attempt.
    say(this.answers, { execution_id: asked.execution_id, ...given, ...(isLeft && { last: true }) });
  }
}

/** Timers and file operations belong to an attempt; connections may be kept for the next one. */
const OF_AN_ATTEMPT = /^(Timeout|Immediate|FSReq.*)$/;
const LEFT = "the task left timers or file operations behind; the program is started again, without them";

function say(descriptor: number, words: object): void {
  let bytes = Buffer.from(`${JSON.stringify(words)}\n`);
  while (bytes.length) bytes = bytes.subarray(writeSync(descriptor, bytes));
}
