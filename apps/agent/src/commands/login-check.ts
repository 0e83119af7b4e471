import { flagOf } from "@devplat/cli";
import { userInfo } from "node:os";
import { mkdir, readFile, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError, silentLogger, systemCode } from "@devplat/base";
import { noteLine, printLine, visible } from "@devplat/base/terminal";
import { ConfigError } from "@devplat/config";
import { SecretStoreError } from "@devplat/secret-store";
import { tokenDigest } from "../auth/token/denied-tokens.ts";
import { assembleStore, type StoreParts } from "../assemble/store.ts";
import { SHORT_STORE_TIMEOUT_MS, type Host } from "../host.ts";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { methodParts } from "../config/sections/store-section.ts";
import { AgentError } from "../errors.ts";
import suppression from "../suppression.cjs";
import type { Invocation, RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { bootstrap, signInAgain } from "./login/sign-in-again.ts";
import { untilStopped } from "./common/signals.ts";

/** The token is renewed once less than this share of its life is left. */
const RENEWAL_SHARE = 0.5;
/** Errors that are not faults of the program. The start of a shell must not fail because of them. */
const EXPECTED = new Set([
  "not_signed_in",
  "login_failed",
  "login_cancelled",
  "login_refused",
  "identity_refused",
  "certificate_unusable",
]);

/** The login hook of a shell's start: signs in if there is no valid token. The marker is refreshed at every end. */
export const run: RunCommand = async (invocation) => {
  const { environment } = invocation;
  const hours = suppression.suppressHours(environment);
  if (hours === undefined) {
    throw new AgentError(
      "usage",
      `${BRAND.environmentPrefix}_SUPPRESS_HOURS takes a whole number of hours above zero`,
    );
  }
  if (invocation.flags.dryRun) {
    printLine("would look at the token and sign in if there is no valid one; nothing was done");
    return 0;
  }
  const marker = suppression.markerPath(environment);
  if (isSuppressed(marker, hours)) return 0;
  try {
    if (await hasPasswdEntry(invocation)) return 0;
    const { host, loaded } = await openContext(invocation);
    if (loaded.config.store.driver === "embedded") return 0;
    return await check(invocation, host, loaded);
  } finally {
    await refresh(marker);
  }
};

function isSuppressed(marker: string, hours: number): boolean {
  try {
    return suppression.isSuppressed(marker, hours, Date.now());
  } catch {
    return false;
  }
}

/** Whether `--no-passwd` is given and the user is one of this host's own, who does not sign in here. */
async function hasPasswdEntry({ options, environment }: Invocation): Promise<boolean> {
  if (!flagOf(options, "no-passwd")) return false;
  if (process.platform === "win32") {
    tell("--no-passwd has no meaning on Windows and is ignored");
    return false;
  }
  const file = environment[`${BRAND.environmentPrefix}_PASSWD_FILE`] || "/etc/passwd";
  try {
    const { username } = userInfo();
    const lines = (await readFile(file, "utf8")).split("\n");
    return lines.some((line) => line.startsWith(`${username}:`));
  } catch (error) {
    tell(`cannot read ${file} (${systemCode(error) ?? "unknown error"}); going on as without --no-passwd`);
    return false;
  }
}

async function check(invocation: Invocation, host: Host, loaded: LoadedConfig): Promise<number> {
  // The sign-in's own warnings would be a second line for the same thing. A shell's start waits for this.
  const impatient = { ...host, logger: silentLogger, storeTimeoutMs: SHORT_STORE_TIMEOUT_MS };
  const parts = await assembleStore(impatient, loaded, true);
  const stop = untilStopped();
  try {
    const isOs = methodParts(loaded.config.store.auth_method).suffix === "os";
    const reason = isOs ? await certificateFault(parts) : await reasonToLogIn(parts, host, stop.signal);
    if (reason === undefined) return 0;
    if (!flagOf(invocation.options, "quiet"))
      process.stderr.write(`${yellow(visible(reason), host.environment)}\n`);
    const login = isOs ? bootstrap : signInAgain;
    await login(host, loaded, parts, stop.signal);
    return 0;
  } catch (error) {
    // A store that is away, a login that failed or was given up.
    const expected =
      error instanceof SecretStoreError || (error instanceof AgentError && EXPECTED.has(error.code));
    if (!expected || error instanceof ConfigError) throw error;
    tell(stop.signal.aborted ? "the login was cancelled" : lineOf(error));
    return 0;
  } finally {
    stop.release();
    await parts.close();
  }
}

/** Why the certificate of `mtls+os` will not do; undefined if it will. No token is looked at. */
async function certificateFault({ tokens }: StoreParts): Promise<string | undefined> {
  try {
    await tokens?.certificates?.current();
    return undefined;
  } catch (error) {
    if (error instanceof AgentError && error.code === "certificate_unusable") return error.message;
    throw error;
  }
}

type Tokens = NonNullable<StoreParts["tokens"]>;

/** Reason for a login; undefined if the token in use is valid. */
async function reasonToLogIn(
  { tokens }: StoreParts,
  { clock }: Host,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (tokens === undefined) return undefined;
  try {
    await tokens.signIn.ensure(signal);
  } catch (error) {
    if (!(error instanceof AgentError && error.code === "not_signed_in")) throw error;
    return whyNot(tokens, clock.now());
  }
  const { info } = tokens.signIn.state();
  const given = tokens.signIn.refusals().find(({ source }) => source === "environment");
  if (given !== undefined) tell(`${given.message}; the next one is used`);
  const expiresAt = info?.expiresAt;
  const renewal = await tokens.signIn.renewIfDue(RENEWAL_SHARE, signal).catch(() => "not possible" as const);
  if (renewal === "not possible" && expiresAt !== undefined) {
    tell(`the token could not be renewed; it is valid until ${new Date(expiresAt).toISOString()}`);
  }
  return undefined;
}

/** Why no token was taken: what is wrong with the cached one, else with that of the environment. */
async function whyNot({ signIn, tokenFile, pin }: Tokens, now: number): Promise<string> {
  const refusals = signIn.refusals();
  const refusal =
    refusals.find(({ source }) => source === "file") ??
    refusals.find(({ source }) => source === "environment");
  if (refusal === undefined) return "no cached token";
  const { source, byStore, message, hint } = refusal;
  if (!byStore) return hint === undefined ? message : `${message}. ${hint}`;
  if (source === "environment") return message;
  const cached = await tokenFile.read().catch(() => undefined);
  const last = await pin.read();
  const isLast = cached !== undefined && last?.token === tokenDigest(cached);
  const expired = isLast && last.expires_at !== null && last.expires_at <= now;
  return expired ? "token expired" : "token no longer valid";
}

/** Later starts of a shell must not wait for the same answer again. */
async function refresh(marker: string): Promise<void> {
  const now = new Date();
  try {
    await mkdir(dirname(marker), { recursive: true, mode: 0o700 });
    await writeFile(marker, "", { mode: 0o600, flag: "a" });
    await utimes(marker, now, now);
  } catch (error) {
    tell(`cannot write the marker ${marker} (${systemCode(error) ?? "unknown error"})`);
  }
}

function tell(text: string): void {
  noteLine(`${BRAND.command}: ${text}`);
}

function lineOf(error: unknown): string {
  return error instanceof AppError ? error.message : "unknown error";
}

/** On a colour terminal; `NO_COLOR` (no-color.org) switches it off. */
function yellow(text: string, environment: NodeJS.ProcessEnv): string {
  const plain = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return process.stderr.isTTY && !plain ? `\u001b[33m${text}\u001b[0m` : text;
}
