import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { systemCode, writeAtomically } from "@devplat/base";
import { BRAND } from "../brand.ts";
import { SvcError } from "../errors.ts";

const FILE = "credentials.json";

/** Login at one service, as `auth login` stores it. */
export interface KeptLogin {
  readonly token: string;
  readonly username: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

interface Credentials {
  /** Origin of the service that was signed in to last: the default of `SVC_URL`. */
  readonly current?: string | undefined;
  /** By origin. */
  readonly services: Readonly<Record<string, KeptLogin>>;
}

/** `~/.config/svc/credentials.json`: of the user alone (0600). */
export function credentialsPath(): string {
  const base = process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config");
  return join(base, BRAND.command, FILE);
}

/** @throws SvcError `usage`: the file is there, but cannot be read as ours; its content is not quoted */
export function readCredentials(): Credentials {
  const path = credentialsPath();
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return { services: {} };
    throw broken(path, `cannot be read (${systemCode(error) ?? "unknown error"})`);
  }
  const found = parsed(text);
  if (found === undefined) throw broken(path, "is not as this program wrote it");
  return found;
}

/** Keeps a login, and makes its service the default. */
export async function keepLogin(origin: string, login: KeptLogin): Promise<void> {
  const { services } = readCredentials();
  await write({ current: origin, services: { ...services, [origin]: login } });
}

export async function forgetLogin(origin: string): Promise<void> {
  const { current, services } = readCredentials();
  const { [origin]: _, ...others } = services;
  await write({ ...(current === origin ? {} : { current }), services: others });
}

async function write(credentials: Credentials): Promise<void> {
  const path = credentialsPath();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeAtomically(path, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
}

/** Checked by hand: every command reads this, and a validator takes longer to load than they run. */
function parsed(text: string): Credentials | undefined {
  try {
    const value = JSON.parse(text) as { current?: unknown; services?: unknown } | null;
    const { current, services } = value ?? {};
    if (current !== undefined && typeof current !== "string") return undefined;
    if (typeof services !== "object" || services === null) return undefined;
    return Object.values(services).every(isKept)
      ? { current, services: services as Credentials["services"] }
      : undefined;
  } catch {
    return undefined;
  }
}

function isKept(value: unknown): value is KeptLogin {
  const kept = (value ?? {}) as Partial<Record<keyof KeptLogin, unknown>>;
  return typeof kept.token === "string" && /^\w+$/.test(kept.token) && typeof kept.username === "string";
}

function broken(path: string, what: string): SvcError {
  return new SvcError("usage", `${path} ${what}`, { hint: "Remove it, and sign in again." });
}
