#!/usr/bin/env node
/** `npx perago manifest` writes a manifest; `serve` is for Perago itself. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { reasonOf, TaskDefinitionError } from "./errors.ts";
import { tasksOf } from "./loading.ts";
import { isMade, manifest } from "./manifest.ts";
import { serve } from "./serve.ts";

const HELP = `usage: npx perago manifest FILE [--out MANIFEST] [--check]

Write the manifest of the tasks that FILE exports. It then stands wherever a
Python module with tasks may stand:

  npx perago manifest src/tasks.ts      writes tasks.toml
  perago check tasks.toml               shows what was declared
  perago run tasks.toml:NAME --repo R   runs one of them

  --out MANIFEST  where to write it (default: the name of FILE with .toml, here)
  --check         write nothing, and fail if the manifest is not up to date
`;

/** Return the exit code; undefined for a program that goes on. */
async function main(words: readonly string[]): Promise<number | undefined> {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: { out: { type: "string" }, check: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  const [command, file, ...more] = positionals;
  if (values.help || !command) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  if (command === "serve" && file && more[0]) {
    await serve(file, more[0]);
    return undefined;
  }
  if (command !== "manifest" || !file || more.length) {
    throw new TaskDefinitionError(`cannot do '${positionals.join(" ")}'; see npx perago --help`);
  }
  return await writeManifest(file, values.out ?? `${basename(file, extname(file))}.toml`, values.check ?? false);
}

async function writeManifest(file: string, out: string, onlyCheck: boolean): Promise<number> {
  const here = dirname(resolve(out));
  if (!existsSync(here)) throw new TaskDefinitionError(`there is no directory ${here}; make it first`);
  const named = (path: string) => relative(here, resolve(path)).split(sep).join("/");
  const tasks = await tasksOf(file);
  const own = `{here}/${named(fileURLToPath(import.meta.url))}`;
  const made = manifest(named(file), tasks.values(), ["node", own, "serve", "--", `{here}/${named(file)}`]);
  const there = existsSync(out) ? readFileSync(out, "utf8") : undefined;
  if (onlyCheck) {
    if (there === made) return 0;
    throw new TaskDefinitionError(`${out} is not up to date; make it anew, without --check`);
  }
  if (there !== undefined && !isMade(there)) {
    throw new TaskDefinitionError(`${out} was not made by this command; name another file with --out`);
  }
  writeFileSync(out, made);
  process.stdout.write(`${out}: ${[...tasks.keys()].join(", ")}\n`);
  return 0;
}

function isUsage(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
}

try {
  const code = await main(process.argv.slice(2));
  // A module may have opened what would keep this process alive.
  if (code !== undefined) process.exit(code);
} catch (error) {
  const expected = error instanceof TaskDefinitionError || isUsage(error);
  if (!expected) console.error(error);
  console.error(`error: ${error instanceof TaskDefinitionError ? error.message : reasonOf(error)}`);
  process.exit(isUsage(error) ? 2 : 1);
}
