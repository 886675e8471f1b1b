/** What an author may declare beside a task: the same as in a manifest, in the names of this language. */

import * as z from "zod";
import { TaskDefinitionError } from "./errors.ts";
import { Guard } from "./guards.ts";
import { refusedPattern, refusedPrefix } from "./paths.ts";

const whole = z.int().min(0);
const seconds = z.number().min(0);
const atLeastOne = z.number().min(1);
const guard = z.instanceof(Guard, { error: "this is not a guard; write one such as requireFile('out.csv')" });
const pattern = z.string().superRefine((text, context) => {
  const problem = refusedPattern(text);
  if (problem) context.addIssue(`the pattern '${text}' ${problem}`);
});
const prefix = z.string().superRefine((text, context) => {
  const problem = refusedPrefix(text);
  if (problem) context.addIssue(`the prefix '${text}' ${problem}`);
});

export const Workspace = z.strictObject({
  prefix: prefix.optional(),
  pre: z.array(guard).readonly().optional(),
  post: z.array(guard).readonly().optional(),
  readOnly: z.boolean().optional(),
  fence: z.enum(["head", "lineage", "hard"]).optional(),
  include: z.array(pattern).readonly().optional(),
  exclude: z.array(pattern).readonly().optional(),
});

export const Controls = z.strictObject({
  retry: z
    .strictObject({
      count: z.int().min(0).max(10).optional(),
      logic: z.enum(["FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"]).optional(),
      delaySeconds: whole.optional(),
      maxDelaySeconds: whole.optional(),
      jitterMs: whole.optional(),
    })
    .optional(),
  timeout: z
    .strictObject({
      policy: z.enum(["RETRY", "TIME_OUT_WF", "ALERT_ONLY"]).optional(),
      seconds: whole.optional(),
      responseSeconds: whole.optional(),
      pollSeconds: whole.optional(),
      totalSeconds: whole.optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      concurrentExecLimit: whole.optional(),
      rateLimitFrequencyInSeconds: whole.optional(),
      rateLimitPerFrequency: whole.optional(),
    })
    .optional(),
  publishBudget: z
    .strictObject({
      observedMergeP99Seconds: seconds,
      safetyMarginSeconds: seconds,
      lakefsMergeTimeoutSeconds: atLeastOne,
      conductorCompletionTimeoutSeconds: atLeastOne,
      workerShutdownGraceSeconds: atLeastOne,
      heartbeatIntervalSeconds: atLeastOne,
    })
    .optional(),
});

export const Metrics = z.strictObject({
  attempts: z.boolean().optional(),
  workspaceIo: z.boolean().optional(),
  workerCapacity: z.boolean().optional(),
});

export const Declaration = z.strictObject({
  name: z.string().refine((name) => name !== "" && name === name.trim() && !/[:\p{C}\p{Zl}\p{Zp}]/u.test(name), {
    error: "use a printable name without ':' or outer blanks",
  }),
  ownerEmail: z.string().refine((address) => address.replace(/^[@ ]+|[@ ]+$/g, "").includes("@"), {
    error: "give an address such as 'team@example.com'",
  }),
  description: z.string().optional(),
  params: z.instanceof(z.ZodType, { error: "give a Zod schema such as z.object({...})" }).optional(),
  result: z.instanceof(z.ZodType, { error: "give a Zod schema such as z.object({...})" }).optional(),
  env: z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "give names of variables")).readonly().optional(),
  workspace: Workspace.optional(),
  controls: Controls.optional(),
  metrics: Metrics.optional(),
});

export type WorkspaceSpec = z.input<typeof Workspace>;
export type TaskControls = z.input<typeof Controls>;
export type MetricSpec = z.input<typeof Metrics>;

/** Refuse a wrong declaration with the first thing that is wrong and what to write instead. */
export function checkDeclaration(given: unknown): void {
  const found = Declaration.safeParse(given);
  if (found.success) return;
  const issue = found.error.issues[0];
  if (!issue) return;
  const named = (given as { name?: unknown } | null)?.name;
  const which = typeof named === "string" && named ? `task '${named}'` : "task";
  const where = issue.path.map(String).join(".");
  const text =
    issue.code === "unrecognized_keys"
      ? `${issue.keys.map((key) => `'${key}'`).join(", ")} is unknown; it knows ${known(issue.path).join(", ")}`
      : issue.message;
  throw new TaskDefinitionError(`${which}: ${where ? `${where}: ` : ""}${text}`);
}

/** List the names that may stand at a place of a declaration. */
function known(path: readonly PropertyKey[]): string[] {
  let here: z.ZodType = Declaration;
  for (const step of path) {
    const shape: Record<string, z.ZodType> = here instanceof z.ZodObject ? here.shape : {};
    here = shape[String(step)] ?? here;
    if (here instanceof z.ZodOptional) here = here.unwrap() as z.ZodType;
  }
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}
