/** Guardrails: what must be true of the input (`pre`) and of the result (`post`). */

import { branded } from "./brand.ts";
import { TaskDefinitionError } from "./errors.ts";
import { checkPath, checkPattern, matches } from "./paths.ts";

type Scalar = string | number | boolean;
type Value = Scalar | readonly Scalar[] | Readonly<Record<string, Scalar>>;

/** One guard, as it stands in a manifest: its name and its arguments. */
export class Guard {
  static {
    branded(this, "Guard");
  }

  readonly name: string;
  readonly given: Readonly<Record<string, Value>>;
  /** What is wrong with the names in a workspace; absent for a guard that looks into tables. */
  readonly violation: ((files: readonly string[]) => string | undefined) | undefined;

  constructor(
    name: string,
    given: Readonly<Record<string, Value | undefined>>,
    violation?: (files: readonly string[]) => string | undefined,
  ) {
    const known = Object.entries(given).filter((entry): entry is [string, Value] => entry[1] !== undefined);
    this.name = name;
    this.given = Object.fromEntries(known);
    this.violation = violation;
  }
}

/** Demand a file, by its path below the workspace. */
export function requireFile(path: string): Guard {
  checkPath("requireFile", path);
  return new Guard("require_file", { path }, (files) => {
    if (files.includes(path)) return undefined;
    return directories(files).has(path) ? `'${path}' is a directory, not a file` : `file '${path}' is missing`;
  });
}

/** Demand a directory with at least one file in it. */
export function requireDir(path: string): Guard {
  const wanted = typeof path === "string" ? path.replace(/\/+$/, "") : path;
  checkPath("requireDir", wanted);
  return new Guard("require_dir", { path: wanted }, (files) => {
    if (directories(files).has(wanted)) return undefined;
    if (files.includes(wanted)) return `'${wanted}' is a file, not a directory`;
    return `directory '${wanted}' is missing or holds no file`;
  });
}

/** Demand a number of matching paths; `**` means any depth. */
export function requireGlob(pattern: string, { minCount = 1, maxCount }: { minCount?: number; maxCount?: number } = {}): Guard {
  checkPattern("requireGlob", pattern);
  checkCount(`requireGlob('${pattern}')`, minCount, maxCount);
  return new Guard("require_glob", { pattern, min_count: minCount, max_count: maxCount }, (files) => {
    const count = matching(pattern, files).length;
    if (count < minCount) return `${count} paths match '${pattern}', at least ${minCount} required`;
    if (maxCount !== undefined && count > maxCount) {
      return `${count} paths match '${pattern}', at most ${maxCount} allowed`;
    }
    return undefined;
  });
}

/** Demand that nothing matches. */
export function forbidGlob(pattern: string): Guard {
  checkPattern("forbidGlob", pattern);
  return new Guard("forbid_glob", { pattern }, (files) => {
    const [first, ...others] = matching(pattern, files);
    if (first === undefined) return undefined;
    const more = others.length ? ` and ${others.length} more` : "";
    return `'${first}'${more} matches the forbidden '${pattern}'`;
  });
}

/** Demand columns with types as Spark writes them: `bigint`, `string`, `decimal(10,2)`. */
export function requireSchema(
  table: string,
  columns: Readonly<Record<string, string>>,
  { extra }: { extra?: boolean } = {},
): Guard {
  if (typeof columns !== "object" || !Object.keys(columns).length) {
    throw new TaskDefinitionError(`requireSchema('${table}'): there are no columns; give an object of names to types`);
  }
  return ofTable("requireSchema", "require_schema", table, { columns, extra });
}

/** Demand a number of rows. */
export function requireRows(table: string, { min = 1, max }: { min?: number; max?: number } = {}): Guard {
  checkCount(`requireRows('${table}')`, min, max);
  return ofTable("requireRows", "require_rows", table, { min, max });
}

/** Demand a value in every row of each column, or in all but a share of them. */
export function requireNotNull(table: string, columns: readonly string[], { maxShare }: { maxShare?: number } = {}): Guard {
  checkColumns("requireNotNull", table, columns);
  return ofTable("requireNotNull", "require_not_null", table, { columns, max_share: maxShare });
}

/** Demand that no two rows have the same values in these columns together. */
export function requireUnique(table: string, columns: readonly string[]): Guard {
  checkColumns("requireUnique", table, columns);
  return ofTable("requireUnique", "require_unique", table, { columns });
}

/** Demand values in a range, ends included, or among some; a missing value passes. */
export function requireValues(
  table: string,
  column: string,
  { min, max, allowed, maxShare }: { min?: Scalar; max?: Scalar; allowed?: readonly Scalar[]; maxShare?: number },
): Guard {
  checkColumns("requireValues", table, [column]);
  return ofTable("requireValues", "require_values", table, { column, min, max, allowed, max_share: maxShare });
}

/** Demand that every key is in another table; the other's columns have the same names, or these. */
export function requireForeignKey(
  table: string,
  columns: readonly string[],
  other: string,
  { otherColumns }: { otherColumns?: readonly string[] } = {},
): Guard {
  checkColumns("requireForeignKey", table, columns);
  checkPath("requireForeignKey", other);
  return ofTable("requireForeignKey", "require_foreign_key", table, { columns, other, other_columns: otherColumns });
}

/** Demand that the number of rows, or means of columns, stay within a share of the input's. */
export function maxDrift(table: string, { rows, mean }: { rows?: number; mean?: Readonly<Record<string, number>> }): Guard {
  return ofTable("maxDrift", "max_drift", table, { rows, mean });
}

function ofTable(where: string, name: string, table: string, given: Readonly<Record<string, Value | undefined>>): Guard {
  checkPath(where, table);
  return new Guard(name, { table, ...given });
}

function checkColumns(where: string, table: string, columns: unknown): void {
  if (Array.isArray(columns) && columns.length && columns.every((each) => typeof each === "string" && each)) return;
  throw new TaskDefinitionError(`${where}('${table}'): ${JSON.stringify(columns)} are no columns; name one or more`);
}

function checkCount(where: string, least: number, most: number | undefined): void {
  const isCount = (count: number) => Number.isSafeInteger(count) && count >= 0;
  if (isCount(least) && (most === undefined || (isCount(most) && most >= least))) return;
  throw new TaskDefinitionError(`${where}: ${least} to ${most} is no range; use whole numbers, the smaller first`);
}

function directories(files: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const file of files) {
    const parts = file.split("/").slice(0, -1);
    parts.forEach((_, depth) => found.add(parts.slice(0, depth + 1).join("/")));
  }
  return found;
}

function matching(pattern: string, files: readonly string[]): string[] {
  return [...new Set([...files, ...directories(files)])].filter((path) => matches(pattern, path)).sort();
}
