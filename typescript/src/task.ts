/** `task` makes a function on a directory a task. */

import * as z from "zod";
import { branded } from "./brand.ts";
import { checkDeclaration, type MetricSpec, type TaskControls, type WorkspaceSpec } from "./declaration.ts";
import { TaskDefinitionError } from "./errors.ts";

/** Which attempt this is. */
export interface Attempt {
  readonly workflow_instance_id: string;
  readonly task_id: string;
  readonly task: string;
  readonly step: string;
  readonly retry_count: number;
  readonly execution_id: string;
  readonly input_ref: string | null;
  /** Seconds since the epoch, or null when there is no limit. */
  readonly deadline: number | null;
}

export type Labels = Readonly<Record<string, string>>;

/** Numbers that are recorded for the task. */
export interface Metrics {
  gauge(name: string, value: number, labels?: Labels): void;
  histogram(name: string, value: number, labels?: Labels): void;
}

/** Lines for the task log. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warning(message: string): void;
  error(message: string): void;
}

/** What the function is given. */
export interface Context<Params, Directory> {
  /** The directory of the workspace. What is written there is published, whole or not at all. */
  readonly workspace: Directory;
  readonly params: Params;
  readonly attempt: Attempt;
  /** A directory for this attempt alone, gone after it. */
  readonly tmp: string;
  /** Tell how much is done; people see it. */
  readonly progress: (done: number, total: number, unit?: string) => void;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Aborted when the attempt is not wanted any more. What takes long should listen to it. */
  readonly signal: AbortSignal;
}

type AnyObject = z.ZodRecord<z.ZodString, z.ZodUnknown>;

export interface TaskOptions<
  Params extends z.ZodType,
  Result extends z.ZodType,
  Workspace extends WorkspaceSpec | undefined,
> {
  /** The name of the task in workflows. */
  readonly name: string;
  /** Whom to ask about it. */
  readonly ownerEmail: string;
  readonly description?: string;
  readonly params?: Params;
  readonly result?: Result;
  /** Variables of the worker's environment that the task may see; it sees no others. */
  readonly env?: readonly string[];
  readonly workspace?: Workspace;
  readonly controls?: TaskControls;
  readonly metrics?: MetricSpec;
}

type Directory<Workspace> = [Workspace] extends [undefined]
  ? undefined
  : undefined extends Workspace
    ? string | undefined
    : string;
/** Without a declared result it may be any object; where all of it is optional, it may be nothing. */
type Returned<Result extends z.ZodType> = Result extends AnyObject
  ? object | void
  : object extends z.input<Result>
    ? z.input<Result> | void
    : z.input<Result>;

export type Body<Params extends z.ZodType, Result extends z.ZodType, Workspace> = (
  context: Context<z.output<Params>, Directory<Workspace>>,
) => Returned<Result> | Promise<Returned<Result>>;

/** A task: what was declared, and the function. */
export class Task<Params extends z.ZodType = z.ZodType, Result extends z.ZodType = z.ZodType> {
  static {
    branded(this, "Task");
  }

  readonly name: string;
  readonly declared: TaskOptions<z.ZodType, z.ZodType, WorkspaceSpec | undefined>;
  readonly params: Params;
  readonly result: Result;
  readonly paramsSchema: JsonSchema;
  readonly resultSchema: JsonSchema;
  readonly body: (context: Context<unknown, string | undefined>) => unknown;

  constructor(declared: Task["declared"], body: Task["body"]) {
    checkDeclaration(declared);
    if (typeof body !== "function") {
      throw new TaskDefinitionError(`task '${declared.name}': the second argument is not a function; give the work to do`);
    }
    this.name = declared.name;
    this.declared = declared;
    this.params = (declared.params ?? anyObject()) as Params;
    this.result = (declared.result ?? anyObject()) as Result;
    // Params are described as they are given, results as they come out.
    this.paramsSchema = schemaOf(declared.name, "params", this.params, "input");
    this.resultSchema = schemaOf(declared.name, "result", this.result, "output");
    this.body = body;
  }
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Declare a task. A wrong declaration throws here, with what to write instead. */
export function task<
  Params extends z.ZodType = AnyObject,
  Result extends z.ZodType = AnyObject,
  const Workspace extends WorkspaceSpec | undefined = undefined,
>(options: TaskOptions<Params, Result, Workspace>, body: Body<Params, Result, Workspace>): Task<Params, Result> {
  return new Task(options, body as Task["body"]);
}

function anyObject(): AnyObject {
  return z.record(z.string(), z.unknown());
}

function schemaOf(name: string, which: "params" | "result", schema: z.ZodType, io: "input" | "output"): JsonSchema {
  let made: JsonSchema;
  try {
    made = z.toJSONSchema(schema, { io, target: "draft-2020-12", override: loosened }) as JsonSchema;
  } catch (error) {
    throw new TaskDefinitionError(
      `task '${name}': ${which} cannot be written as JSON Schema (${(error as Error).message}); use types that JSON has`,
    );
  }
  if ("type" in made && made["type"] !== "object") {
    throw new TaskDefinitionError(`task '${name}': ${which} is not an object; wrap it, as in z.object({ value: ... })`);
  }
  return made;
}

/** Leave to Zod what other languages read in another way, or what Zod itself mends. */
function loosened({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: Record<string, unknown> }): void {
  delete jsonSchema["pattern"];
  if (!Number.isInteger(jsonSchema["multipleOf"])) delete jsonSchema["multipleOf"];
  const { def } = zodSchema._zod;
  if (def.type === "catch" || ("coerce" in def && def.coerce)) {
    for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
  }
}
