import { Late } from "../late.ts";

type Method = (...parameters: unknown[]) => Promise<unknown>;

/** A copy of a part of the store, each of whose methods runs inside of `around`. */
export function wrapMethods<Part extends object>(
  part: Part,
  around: (run: () => Promise<unknown>) => Promise<unknown>,
): Part {
  return Object.fromEntries(
    Object.entries<Method>(part as Record<string, Method>).map(([name, method]) => [
      name,
      async (...parameters: unknown[]) => around(async () => method(...parameters)),
    ]),
  ) as Part;
}

/**
 * A part of the store whose module is loaded with the first call of a method: a start loads only what it uses.
 *
 * @param names of all methods
 */
export function lateMethods<Part extends object>(
  names: readonly (keyof Part & string)[],
  load: () => Promise<Part>,
): Part {
  const part = new Late(load);
  const methods = names.map((name) => [
    name,
    async (...parameters: unknown[]) => ((await part.get())[name] as Method)(...parameters),
  ]);
  return Object.fromEntries(methods) as Part;
}
