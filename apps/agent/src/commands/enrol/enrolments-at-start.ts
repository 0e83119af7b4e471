import { noteLine } from "@devplat/base/terminal";
import { SecretStoreError } from "@devplat/secret-store";
import type { SignIn } from "../../auth/sign-in.ts";
import { BRAND } from "../../brand.ts";
import type { EnrolmentRunner } from "../../enrol/runner.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import type { EnrolmentStatus } from "../../status.ts";
import { enrolAtTerminal } from "./conversation.ts";
import { hasTerminal } from "../login/login-at-start.ts";

/** Wait before the next look at the credentials after the store could not be asked, in milliseconds. */
const RETRY_MS = 5000;

interface EnrolmentParts {
  readonly enrolments: EnrolmentRunner;
  readonly session: { readonly signIn: SignIn };
  /** The web pages, which ask for credentials themselves; undefined while they are off. */
  readonly web: object | undefined;
}

/**
 * Asks the user for the credentials that are missing when the daemon starts, during its other work: one after the
 * other at the terminal, where there is one and no web page that asks for them. Otherwise the log names them. Never
 * throws.
 */
export async function offerEnrolments(
  host: Host,
  { enrolments, session, web }: EnrolmentParts,
  stopped: AbortSignal,
): Promise<void> {
  try {
    if (enrolments.list().length === 0) return;
    await lookedAt(host, enrolments, session.signIn, stopped);
    const atTerminal = hasTerminal() && web === undefined;
    const elsewhere = web === undefined ? "" : `, or the page that '${BRAND.command} open' shows`;
    const hint = atTerminal ? undefined : `'${BRAND.command} enrol run KEY' gets one${elsewhere}`;
    const missing = logMissing(host, enrolments, hint);
    if (atTerminal) await askForAll(host, enrolments, missing, stopped);
  } catch (error) {
    if (!stopped.aborted) host.logger.warn({ err: error }, "the user could not be asked for credentials");
  }
}

/**
 * Runs the enrolments that do not need the user, for a process that does one cycle and ends; the log names the others that are
 * missing. Failures are in the log: the cycle is done all the same.
 */
export async function runUnattended(
  host: Host,
  enrolments: EnrolmentRunner,
  stopped: AbortSignal,
): Promise<void> {
  if (enrolments.list().length === 0) return;
  try {
    await enrolments.check(stopped);
  } catch (error) {
    stopped.throwIfAborted();
    host.logger.warn({ err: error }, "enrolments could not be looked at");
    return;
  }
  logMissing(host, enrolments, `'${BRAND.command} enrol run KEY' gets one`);
}

/** @returns the enrolments that are missing and need the user */
function logMissing(host: Host, enrolments: EnrolmentRunner, hint: string | undefined): EnrolmentStatus[] {
  const missing = enrolments.list().filter(isMissing);
  if (missing.length > 0) {
    const keys = missing.map(({ key }) => key);
    host.logger.warn({ enrolments: keys, ...(hint !== undefined && { hint }) }, "credentials are missing");
  }
  return missing;
}

async function askForAll(
  host: Host,
  enrolments: EnrolmentRunner,
  missing: readonly EnrolmentStatus[],
  stopped: AbortSignal,
): Promise<void> {
  for (const { key, engine } of missing) {
    // The user may have enrolled another way while the former one was asked for.
    if (stopped.aborted || !enrolments.list().some((now) => now.key === key && isMissing(now))) continue;
    noteLine(`Enrolment ${key} (${engine})`);
    try {
      await enrolAtTerminal(enrolments, key, host.environment, stopped);
      noteLine(`stored ${key}`);
    } catch (error) {
      if (stopped.aborted) return;
      const hint = `'${BRAND.command} enrol run ${key}' asks again`;
      host.logger.warn({ enrolment: key, err: error, hint }, "not enrolled at the terminal");
      // A user who cancels one enrolment is not asked for another one.
      if (error instanceof AgentError && ["usage", "enrolment_cancelled"].includes(error.code)) return;
    }
  }
}

/** Waits for a login, and until the store has told which credentials are there. */
async function lookedAt(
  { clock }: Host,
  enrolments: EnrolmentRunner,
  signIn: SignIn,
  stopped: AbortSignal,
): Promise<void> {
  const { promise: end, resolve: ended } = Promise.withResolvers<void>();
  stopped.addEventListener("abort", () => ended(), { once: true });
  let changed = (): void => undefined;
  signIn.onChange(() => changed());
  for (;;) {
    stopped.throwIfAborted();
    const change = new Promise<void>((resolve) => (changed = resolve));
    if (!signIn.state().authenticated) {
      await Promise.race([change, end]);
      continue;
    }
    try {
      await enrolments.check(stopped);
      return;
    } catch (error) {
      if (!(error instanceof SecretStoreError)) throw error;
      await clock.sleep(RETRY_MS, stopped).catch(() => undefined);
    }
  }
}

function isMissing({ interactive, state }: EnrolmentStatus): boolean {
  return interactive && (state === "pending" || state === "failed");
}
