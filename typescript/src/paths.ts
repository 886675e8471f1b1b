/** Paths and patterns of a workspace: always with `/`, never out of it. */

import { TaskDefinitionError } from "./errors.ts";

/** Refuse a path that cannot be a file or directory of a workspace. */
export function checkPath(where: string, path: unknown): string {
  const problem = typeof path === "string" ? refusedPath(path) : "is not a text";
  if (problem) {
    throw new TaskDefinitionError(
      `${where}(${JSON.stringify(path)}): the path ${problem}; use a '/' path below the workspace`,
    );
  }
  return path as string;
}

/** Refuse a pattern that could match nothing, or something outside. */
export function checkPattern(where: string, pattern: unknown): string {
  const problem = typeof pattern === "string" ? refusedPattern(pattern) : "is not a text";
  if (problem) {
    throw new TaskDefinitionError(
      `${where}(${JSON.stringify(pattern)}): the pattern ${problem}; use one such as 'raw/*.csv' or '**/*.csv'`,
    );
  }
  return pattern as string;
}

export function refusedPrefix(prefix: string): string | undefined {
  if (!prefix) return "is empty; use '/' for the whole repository";
  if (/[\\\0]/.test(prefix)) return "contains a backslash or NUL; use '/' between segments";
  if (prefix === "/") return undefined;
  const segments = prefix.replace(/^\/+|\/+$/g, "").split("/");
  const odd = segments.find(isOdd);
  return odd === undefined ? undefined : `has the segment '${odd}'; name one directory of the repository`;
}

export function refusedPattern(pattern: string): string | undefined {
  if (!pattern) return "is empty";
  if (/[\\\0]/.test(pattern)) return "contains a backslash or NUL; use '/' between segments";
  if (pattern.startsWith("/")) return "is absolute; write it relative to the workspace";
  for (const segment of pattern.split("/")) {
    if (isOdd(segment)) return `has the segment '${segment}'; name files below the workspace only`;
    if (segment.includes("**") && segment !== "**") {
      return `has '**' inside the segment '${segment}'; '**' must stand alone`;
    }
  }
  return undefined;
}

function refusedPath(path: string): string | undefined {
  if (!path) return "is empty";
  if (path.startsWith("/")) return "is absolute";
  if (/[\\\0]/.test(path)) return "contains a NUL or a backslash";
  const odd = path.split("/").find(isOdd);
  return odd === undefined ? undefined : `has the segment '${odd}'`;
}

function isOdd(segment: string): boolean {
  return segment === "" || segment === "." || segment === "..";
}

/** Tell whether a whole path fits a pattern; `**` is any depth, `*`, `?` and `[...]` stay in one segment. */
export function matches(pattern: string, path: string): boolean {
  return fits(pattern.split("/"), path.split("/"));
}

function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return path.length === 0;
  if (path.length === 0) return false;
  if (first !== "**") return expression(first).test(path[0] ?? "") && fits(rest, path.slice(1));
  // As the last segment it names a file at any depth; before others it may also stand for nothing.
  if (rest.length === 0) return true;
  return path.some((_, skipped) => fits(rest, path.slice(skipped)));
}

function expression(segment: string): RegExp {
  const parts = segment.replace(/\*|\?|\[(!?)(\]?[^\]]*)\]|[\\^$.|+(){}[\]]/g, (found, not?: string, set?: string) => {
    if (found === "*") return ".*";
    if (found === "?") return ".";
    if (set === undefined) return `\\${found}`;
    return `[${not ? "^" : ""}${set.replace(/[\\\]^]/g, "\\$&")}]`;
  });
  return new RegExp(`^${parts}$`, "su");
}
