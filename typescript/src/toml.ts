/** Write a table as TOML 1.0, its tables under headings of their own. */

export type Table = { readonly [key: string]: unknown };

/** Write the entries of a table under a heading such as `task.workspace`. */
export function section(heading: string, table: Table): string[] {
  const entries = Object.entries(table).filter(([, value]) => value !== undefined);
  const plain = entries.filter(([, value]) => !isTable(value));
  const tables = entries.filter((entry): entry is [string, Table] => isTable(entry[1]));
  const lines = plain.map(([key, value]) => `${keyed(key)} = ${inline(value)}`);
  // An empty table needs its heading, or it would not be there.
  const headed = lines.length || !tables.length ? [`[${heading}]`, ...lines, ""] : [];
  return [...headed, ...tables.flatMap(([key, inner]) => section(`${heading}.${keyed(key)}`, inner))];
}

/** Write a value on one line. */
export function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number" && Number.isFinite(value)) return number(value);
  if (isTable(value)) {
    const inside = Object.entries(value).filter(([, each]) => each !== undefined);
    return inside.length ? `{ ${inside.map(([key, each]) => `${keyed(key)} = ${inline(each)}`).join(", ")} }` : "{}";
  }
  throw new TypeError(`${value === null ? "null" : String(value)} cannot be written in TOML`);
}

function number(value: number): string {
  // 1e21 is an integer for us and would have no decimal point; TOML's integers have 64 bits.
  if (Number.isSafeInteger(value)) return String(value);
  const text = String(value);
  return /[.e]/.test(text) ? text.replace("e+", "e") : `${text}.0`;
}

function quoted(text: string): string {
  // JSON leaves DEL as it is, which TOML forbids, and half a surrogate cannot be UTF-8.
  return JSON.stringify(text.replace(/[\uD800-\uDFFF]/gu, "\uFFFD")).replaceAll("\x7f", "\\u007F");
}

function keyed(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quoted(key);
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
