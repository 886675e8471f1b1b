/** Values that JSON says as they are; all others would be changed on the way without a word. */

/** Say where and why a value is not JSON; undefined when it is. */
export function notJson(value: unknown, path = "it", around: readonly object[] = []): string | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : `${path} is ${value}`;
    case "object":
      return value === null ? undefined : objectProblem(value, path, around);
    default:
      return `${path} is of type ${typeof value}`;
  }
}

function objectProblem(value: object, path: string, around: readonly object[]): string | undefined {
  if (around.includes(value)) return `${path} contains itself`;
  if ("toJSON" in value && typeof value.toJSON === "function") return notJson(value.toJSON(), path, [...around, value]);
  if (Array.isArray(value)) {
    return first(value.entries(), ([index, each]) => notJson(each, `${path}[${index}]`, [...around, value]));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && !isPlain(value)) {
    return `${path} is a ${value.constructor?.name ?? "special object"}`;
  }
  // A property that is undefined is one that is not there.
  const there = Object.entries(value).filter(([, each]) => each !== undefined);
  return first(there, ([key, each]) => notJson(each, `${path}.${key}`, [...around, value]));
}

/** An instance of somebody's class is as plain as its properties; Map, Set and Promise keep theirs elsewhere. */
function isPlain(value: object): boolean {
  return Object.prototype.toString.call(value) === "[object Object]";
}

function first<T>(items: Iterable<T>, problem: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Parse JSON, and say which whole number JavaScript cannot hold: it is another number by now. */
export function exactJson(text: string): { readonly value: unknown; readonly problem: string | undefined } {
  let problem: string | undefined;
  const value: unknown = JSON.parse(text, (key: string, each: unknown, context?: { readonly source?: string }) => {
    if (typeof each !== "number" || Number.isSafeInteger(each) || !Number.isInteger(each)) return each;
    if (context?.source !== undefined && !/^-?\d+$/.test(context.source)) return each;
    problem ??= `${key} is ${context?.source ?? each}, which JavaScript cannot hold exactly; send it as a text`;
    return each;
  });
  return { value, problem };
}
