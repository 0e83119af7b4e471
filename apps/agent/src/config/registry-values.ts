import { configSchema } from "./schema.ts";
import { emptyKey, type RegistryKey, type RegistryValue } from "./registry-file.ts";
import { AgentError } from "../errors.ts";

/** Registry key with the policy of a Windows host. */
export const REGISTRY_ROOT = "HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\daemon";

/** Rounds of putting types right: a configuration nests far less deep. */
const MAX_ROUNDS = 20;
const MAX_DWORD = 2 ** 32 - 1;

/**
 * A configuration, as a file has it, as registry keys: mappings are keys, lists of mappings are keys `0000`, `0001`, …,
 * other lists are REG_MULTI_SZ, true and false are 1 and 0.
 * @throws AgentError `registry_file_invalid` for what a registry cannot hold
 */
export function toRegistry(value: Readonly<Record<string, unknown>>): RegistryKey {
  const key = emptyKey();
  for (const [name, entry] of Object.entries(value)) {
    if (entry === undefined || entry === null) continue;
    if (isMapping(entry)) key.keys.set(checkedName(name), toRegistry(entry));
    else if (Array.isArray(entry) && entry.some(isMapping)) {
      const items = Object.fromEntries(
        entry.map((item, index) => [String(index).padStart(4, "0"), item as unknown]),
      );
      key.keys.set(checkedName(name), toRegistry(items));
    } else key.values.set(name, scalar(name, entry));
  }
  return key;
}

function scalar(name: string, value: unknown): RegistryValue {
  if (typeof value === "string") return checkedText(name, value);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_DWORD) return value;
  if (!Array.isArray(value)) throw unfit(name, "a number out of range");
  return value.map((item: unknown) => {
    if (item === "") throw unfit(name, "an empty text in a list");
    return typeof item === "number" ? String(item) : checkedText(name, String(item));
  });
}

function checkedText(name: string, text: string): string {
  if (text.includes("\0")) throw unfit(name, "a NUL");
  return text;
}

function checkedName(name: string): string {
  if (name === "" || /[\\\]\r\n]/.test(name))
    throw unfit(name, "a key's name with a backslash, bracket or line break");
  return name;
}

function unfit(name: string, what: string): AgentError {
  return new AgentError("registry_file_invalid", `${name}: a registry file cannot hold ${what}`);
}

/**
 * The configuration that registry keys stand for. What is a list, a number or true and false is decided by what the
 * schema takes there; what fits nowhere stays, for the check of the configuration to name.
 */
export function fromRegistry(key: RegistryKey): Record<string, unknown> {
  const value = plain(key);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { error } = configSchema.safeParse(value);
    const changed = (error?.issues ?? []).map((issue) => {
      const path = issue.code === "invalid_union" ? [...issue.path, ...innerPath(issue.errors)] : issue.path;
      return retype(value, path, issue.code === "invalid_type" ? issue.expected : "boolean");
    });
    if (!changed.includes(true)) break;
  }
  return value;
}

function plain(key: RegistryKey): Record<string, unknown> {
  return Object.fromEntries<unknown>([
    ...key.values,
    ...[...key.keys].map(([name, below]) => [name, plain(below)] as const),
  ]);
}

function innerPath(
  errors: readonly (readonly { readonly path: readonly PropertyKey[] }[])[],
): readonly PropertyKey[] {
  return errors.flat().find((issue) => issue.path.length > 0)?.path ?? [];
}

/** Converts the value at a path to the type that is expected there. Returns whether that was possible. */
function retype(root: Record<string, unknown>, path: readonly PropertyKey[], expected: string): boolean {
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((at, step) => (at as Record<PropertyKey, unknown>)?.[step], root);
  const last = path.at(-1);
  if (last === undefined || typeof parent !== "object" || parent === null) return false;
  const holder = parent as Record<PropertyKey, unknown>;
  const next = converted(holder[last], expected);
  if (next === undefined) return false;
  holder[last] = next;
  return true;
}

function converted(value: unknown, expected: string): unknown {
  if (expected === "boolean" && (value === 0 || value === 1)) return value === 1;
  if (expected === "array" && isMapping(value)) {
    return Object.entries(value)
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([, item]) => item);
  }
  if ((expected === "number" || expected === "int") && typeof value === "string" && /^\d+$/.test(value)) {
    return Number(value);
  }
  return undefined;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
