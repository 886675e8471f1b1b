/** The golden cases in TypeScript. */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { forbidGlob, requireFile, task, TaskFailed, TaskTerminalError } from "perago";
import { z } from "zod";

export const golden = task(
  {
    name: "golden",
    ownerEmail: "tests@example.com",
    params: z.object({ do: z.string(), text: z.string().default("") }),
    result: z.object({ size: z.int().default(0) }),
    workspace: { prefix: "/in", pre: [requireFile("in.txt")], post: [forbidGlob("*.tmp")] },
  },
  async ({ workspace, params, metrics }) => {
    switch (params.do) {
      case "write":
        await writeFile(join(workspace, "out.txt"), params.text);
        break;
      case "remove":
        await rm(join(workspace, "in.txt"));
        break;
      case "temporary":
        await writeFile(join(workspace, "left.tmp"), "x");
        break;
      case "measure":
        metrics.gauge("songs", 3, { kind: "flac" });
        break;
      case "fail":
        throw new TaskFailed("no song");
      case "never":
        throw new TaskTerminalError("no song");
      case "lie":
        return { size: "much" } as unknown as { size: number };
    }
    return { size: params.text.length };
  },
);
