/** Two copies of this package may meet in one process: what one has made is known to the other. */

/** Make `instanceof` true for what any copy of this class has made. */
export function branded(kind: { readonly prototype: object }, name: string): void {
  const brand = Symbol.for(`perago.${name}`);
  Object.defineProperty(kind.prototype, brand, { value: true });
  Object.defineProperty(kind, Symbol.hasInstance, {
    value: (value: unknown) => typeof value === "object" && value !== null && brand in value,
  });
}
