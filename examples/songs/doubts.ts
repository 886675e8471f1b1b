// A step in TypeScript: lists words that sound like others, for a person to look at.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { requireFile, requireGlob, task } from "perago";
import { z } from "zod";

const ALIKE: Record<string, string> = { key: "quay", see: "sea", peek: "peak", song: "sung" };

export const doubts = task(
  {
    name: "songs_doubt",
    ownerEmail: "songs@example.com",
    params: z.object({}),
    result: z.object({ doubts: z.int() }),
    workspace: {
      pre: [requireGlob("lyrics/*.txt", { minCount: 1 })],
      post: [requireFile("doubts.txt")],
    },
    controls: { retry: { delaySeconds: 1 } },
  },
  async ({ workspace, progress }) => {
    const songs = (await readdir(join(workspace, "lyrics"))).sort();
    const found: string[] = [];
    for (const [done, song] of songs.entries()) {
      const lines = (await readFile(join(workspace, "lyrics", song), "utf8")).split("\n");
      lines.forEach((line, number) => {
        for (const word of line.split(" ")) {
          if (word in ALIKE) found.push(`${song}:${number + 1}: ${word}, or ${ALIKE[word]}?`);
        }
      });
      progress(done + 1, songs.length, "songs");
    }
    await writeFile(join(workspace, "doubts.txt"), found.map((line) => `${line}\n`).join(""));
    return { doubts: found.length };
  },
);
