/** What the tests of the program that serves a task ask of it. */

import { spawn } from "node:child_process";
import { createWriteStream, existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { task, TaskFailed } from "perago";
import { z } from "zod";

let served = 0;

export const act = task(
  {
    name: "act",
    ownerEmail: "tests@example.com",
    params: z.looseObject({ do: z.string(), path: z.string().default("") }),
    result: z.looseObject({ pid: z.int(), served: z.int() }),
    env: ["PROFILE"],
    workspace: { prefix: "/in" },
  },
  async ({ workspace, params, attempt, tmp, signal, progress, log }) => {
    served += 1;
    const told: Record<string, unknown> = {};
    switch (params.do) {
      case "print":
        console.log("printed");
        console.error("told");
        log.warning("logged");
        progress(1, 2, "files");
        break;
      case "look":
        told["environment"] = Object.keys(process.env).sort();
        told["attempt"] = attempt;
        told["tmp"] = existsSync(tmp);
        break;
      case "timer":
        setTimeout(() => undefined, 1_000_000);
        break;
      case "forget":
        void writeFile(join(workspace, "half.bin"), Buffer.alloc(50_000_000));
        break;
      case "reject":
        void Promise.reject(new Error("lost"));
        await sleep(10_000);
        break;
      case "stream":
        createWriteStream(join(workspace, "half.bin")).write("half");
        await sleep(20);
        break;
      case "spawn":
        spawn("sleep", ["1000"]);
        break;
      case "detach":
        spawn("sleep", ["1000"], { detached: true, stdio: "ignore" }).unref();
        break;
      case "circle":
        told["self"] = told;
        return { pid: 0, served: 0, self: told };
      case "exit":
        process.exit(0);
        break;
      case "throw":
        throw "a text";
      case "wait":
        await writeFile(params.path, "begun");
        await sleep(1_000_000, undefined, { signal }).catch(() => {
          throw new TaskFailed("nobody wants this any more");
        });
        break;
      case "change":
        await writeFile(join(workspace, "a.txt"), `${await readFile(join(workspace, "a.txt"), "utf8")}!`);
    }
    return { pid: process.pid, served, ...told };
  },
);
