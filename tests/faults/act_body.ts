/** What the body of an act does, in TypeScript: the same as act_body.py, but for its deeds. */

import { existsSync } from "node:fs";
import { appendFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { task, TaskFailed } from "perago";
import { z } from "zod";

const PARTS = 3;
const Act = z.object({
  path: z.string(),
  mode: z.string().default("change"),
  die: z.int().default(-1),
  wait: z.boolean().default(false),
  apart: z.boolean().default(false),
  do: z.literal("").default(""),
  record: z.string().default(""),
});
type Act = z.output<typeof Act>;

export const act = task(
  { name: "act", ownerEmail: "tests@example.com", params: Act, result: z.object({ run: z.int() }), workspace: {} },
  async ({ workspace, params, signal }) => {
    const run = await begin(params);
    // Whoever dies before the end leaves a link to what is not the attempt's (V6).
    const wayOut = join(workspace, "way-out");
    await symlink(join(dirname(params.path), "outside"), wayOut);
    const changes = params.mode === "change" || (params.mode === "once" && run === 0);
    for (let part = 0; changes && part < PARTS; part += 1) {
      if (params.die === run && part === 1) await die(params);
      const name = params.apart ? `part${part}-${run}.txt` : `part${part}.txt`;
      await writeFile(join(workspace, name), `${run}:${part}`);
    }
    if (changes) await rm(join(workspace, "old.txt"), { force: true });
    else if (params.die === run) await die(params);
    if (params.wait) await wait(params, signal);
    await rm(wayOut);
    return { run };
  },
);

async function begin(given: Act): Promise<number> {
  const runs = `${given.path}.runs`;
  const run = existsSync(runs) ? (await stat(runs)).size : 0;
  await appendFile(runs, "x");
  return run;
}

async function die(given: Act): Promise<void> {
  await appendFile(given.record, `${basename(given.path)}:die\n`);
  process.kill(process.pid, "SIGKILL");
  await sleep(60_000);
}

async function wait(given: Act, signal: AbortSignal): Promise<void> {
  await writeFile(`${given.path}.begun`, String(process.pid));
  while (!existsSync(`${given.path}.go`)) {
    if (signal.aborted) {
      await writeFile(`${given.path}.cancelled`, "");
      throw new TaskFailed("nobody wants this any more");
    }
    await sleep(20);
  }
}
