/** What an attempt has begun and not ended when its function returns. */

import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { relative, sep } from "node:path";
import type { Worker } from "node:worker_threads";

/** Connections and what they wait for may be kept for the next attempt. */
const KEPT = /^(TCP|TLS|Pipe|TTY|UDP|HTTP|Signal|FSEvent|StatWatcher)/;
const TIMERS = /^(Timeout|Immediate)$/;
const WRITING = 0o3;

type Counts = ReadonlyMap<string, number>;

/** Node lists no worker threads, but tells when one begins. */
const threads = new Set<Worker>();
process.on("worker", (thread) => {
  threads.add(thread);
  thread.once("exit", () => threads.delete(thread));
});

/** Count what keeps this process busy, by kind. */
export function busy(): Counts {
  const counts = new Map([["Worker", threads.size]]);
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** List the kinds of which there are more than before. */
function more(before: Counts): string[] {
  return [...busy()].filter(([kind, count]) => count > (before.get(kind) ?? 0) && !KEPT.test(kind)).map(([kind]) => kind);
}

/** Tell whether timers are left: they may be harmless, and may be work that goes on. */
export function timersSince(before: Counts): boolean {
  return more(before).some((kind) => TIMERS.test(kind));
}

/** Say what is still going on that can change the workspace; undefined when nothing is. */
export function workSince(before: Counts, workspace: string | null): string | undefined {
  const kinds = more(before).filter((kind) => !TIMERS.test(kind));
  const names: string[] = kinds.map((kind) => (kind.startsWith("FSReq") ? "a file operation" : NAMES[kind] ?? kind));
  names.push(...openBelow(workspace).map((file) => `${file}, which is open for writing`));
  return names.length ? [...new Set(names)].join(", ") : undefined;
}

const NAMES: Readonly<Record<string, string>> = { ProcessWrap: "a child process", Worker: "a worker thread" };

/** List the files of a workspace that this process can still write to; where the system does not tell, none. */
function openBelow(workspace: string | null): string[] {
  if (workspace === null) return [];
  try {
    const root = realpathSync(workspace);
    return readdirSync("/proc/self/fd").flatMap((number) => {
      const path = targetOf(number);
      if (path === undefined || !path.startsWith(root + sep)) return [];
      const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, "utf8"))?.[1] ?? "0";
      return Number.parseInt(flags, 8) & WRITING ? [relative(root, path)] : [];
    });
  } catch {
    return [];
  }
}

function targetOf(number: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${number}`);
  } catch {
    return undefined; // The listing's own descriptor is closed by now.
  }
}
