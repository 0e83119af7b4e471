import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { backoffMs, messageOf, type Clock, type Logger } from "@devplat/base";
import { SshProtocolError, publicKeyOf, type KeyPair } from "@devplat/ssh-protocol";
import type { SshKeySource } from "../../../config/sections/ssh-agent-section.ts";
import { publicMessage } from "../../../errors.ts";
import type { IdentitySource, KeyRestrictions, SshIdentity } from "../identity.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { CertificateIdentity } from "./certificate-identity.ts";
import { ChangeListeners } from "../../../change-listeners.ts";
import { LISTING_LIMIT_MS, endsInTime } from "./listing-limit.ts";
import { renderPrincipals, type PrincipalContext } from "./principals.ts";
import type { SignInWait } from "./sign-in-wait.ts";

/** A certificate is renewed when this share of its life is left, but not later than this time before its end. */
const RENEWAL_SHARE = 0.1;
const RENEWAL_MS = 30_000;
/** Longest sleep, so that a changed clock or a sleep of the host is noticed; in milliseconds. */
const MAX_SLEEP_MS = 60_000;
/** Waits after failures. */
const BACKOFF = { firstMs: 1000, maxMs: 5 * 60_000 } as const;
const RSA_BITS = 3072;
const generate = promisify(generateKeyPair);

export type CaSettings = Extract<SshKeySource, { source: "ca" }>;

export interface CaSourceParts {
  /** Undefined for a store without an SSH engine. */
  readonly authority: CertificateAuthority | undefined;
  readonly signIn: Pick<SignInWait, "isSignedIn">;
  readonly context: PrincipalContext;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A key that is made in memory, with a certificate of the store's SSH engine that is renewed before its end. */
export class CaSource implements IdentitySource {
  readonly name: string;
  readonly kind = "ca";
  readonly #parts: CaSourceParts;
  readonly #settings: CaSettings;
  readonly #restrictions: KeyRestrictions;
  readonly #listeners = new ChangeListeners();
  readonly #end = new AbortController();
  #pair: KeyPair | undefined;
  #identity: CertificateIdentity | undefined;
  /** Time of the next request, in milliseconds since the epoch: a renewal, or a try after a failure. */
  #dueAt = 0;
  #failures = 0;
  #problem: string | undefined;
  #isSlow = false;
  #running: Promise<void> | undefined;
  #request = new AbortController();
  #timer: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  /** After {@link forget} no certificate is asked for until a client wants one, or a user signs in. */
  #isWanted = true;

  constructor(parts: CaSourceParts, settings: CaSettings, restrictions: KeyRestrictions) {
    this.name = settings.name;
    this.#parts = parts;
    this.#settings = settings;
    this.#restrictions = restrictions;
  }

  /** Gets the first certificate, and renews it from then on. */
  start(): void {
    this.#timer ??= this.#keepRenewed(this.#end.signal);
  }

  async identities(signal: AbortSignal): Promise<readonly SshIdentity[]> {
    this.#isWanted = true;
    const isDue = this.#current === undefined && this.#parts.clock.now() >= this.#dueAt;
    if (isDue) {
      this.#isSlow = !(await endsInTime(this.#renew(), this.#parts.clock, signal));
      this.#wake?.();
    }
    return this.known();
  }

  known(): readonly SshIdentity[] {
    const current = this.#current;
    return current === undefined ? [] : [current];
  }

  problem(): string | undefined {
    if (this.#problem !== undefined) return this.#problem;
    return this.#isSlow ? `the store has not answered within ${LISTING_LIMIT_MS / 1000} s` : undefined;
  }

  forget(): void {
    this.#isWanted = false;
    this.#drop();
  }

  /** Asks for a certificate soon: a user has signed in. @param isOther another user than before, whose certificate is dropped */
  signedIn(isOther: boolean): void {
    if (isOther) this.#drop();
    this.#isWanted = true;
    this.#failures = 0;
    if (this.#current === undefined) this.#dueAt = 0;
    this.#wake?.();
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    this.forget();
    this.#wake?.();
    await this.#timer;
    await this.#running;
  }

  /** The identity, while its certificate is valid. */
  get #current(): CertificateIdentity | undefined {
    const end = this.#identity?.certificateExpiresAt ?? Infinity;
    return this.#parts.clock.now() < end ? this.#identity : undefined;
  }

  #drop(): void {
    this.#request.abort();
    this.#request = new AbortController();
    this.#running = undefined;
    const had = this.#identity !== undefined;
    this.#pair = undefined;
    this.#identity = undefined;
    this.#dueAt = 0;
    if (had) this.#listeners.changed();
  }

  async #keepRenewed(signal: AbortSignal): Promise<void> {
    const { clock, signIn } = this.#parts;
    while (!signal.aborted) {
      // Created before the check, so that no call of `#wake` is lost.
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      if (this.#isWanted && signIn.isSignedIn && clock.now() >= this.#dueAt)
        await Promise.race([this.#renew(), woken]);
      const timer = new AbortController();
      const limit = AbortSignal.any([signal, timer.signal]);
      const rest = this.#dueAt - clock.now();
      const waitMs = this.#isWanted && rest > 0 ? Math.min(MAX_SLEEP_MS, rest) : MAX_SLEEP_MS;
      await Promise.race([clock.sleep(waitMs, limit).catch(() => undefined), woken]);
      timer.abort();
      // The end of a certificate is a change, too.
      if (this.#identity !== undefined && this.#current === undefined) this.#expire();
    }
  }

  #expire(): void {
    this.#identity = undefined;
    this.#listeners.changed();
  }

  /** Gets a certificate. Concurrent callers share it. Never rejects: a failure is the problem of the source. */
  #renew(): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    const running = this.#issue(AbortSignal.any([this.#end.signal, this.#request.signal])).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #issue(signal: AbortSignal): Promise<void> {
    const { authority, context, clock, logger } = this.#parts;
    const { mount, role, principals, ttl, extensions, key_type: type } = this.#settings;
    try {
      if (authority === undefined) {
        throw new SshProtocolError("unsupported", "the embedded store signs no SSH certificates");
      }
      const pair = this.#pair ?? (await newPair(type));
      const names = renderPrincipals(principals, context);
      const request = { mount, role, publicKey: pair.publicKey, principals: names, ttlMs: ttl, extensions };
      const issued = await authority.issue(request, signal);
      signal.throwIfAborted();
      const shown = { comment: `${this.name}: ${names.join(", ")}`, restrictions: this.#restrictions };
      this.#pair = pair;
      this.#identity = new CertificateIdentity(issued, pair, shown);
      this.#dueAt = renewalAt(clock.now(), this.#identity.certificateExpiresAt);
      this.#failures = 0;
      this.#problem = undefined;
      this.#isSlow = false;
      logger.debug(
        { source: this.name, serial: String(issued.certificate.serial) },
        "SSH certificate issued",
      );
    } catch (error) {
      if (signal.aborted) return;
      this.#failures += 1;
      this.#dueAt = clock.now() + backoffMs(this.#failures, BACKOFF);
      const problem = `cannot get a certificate from ${mount}/sign/${role}: ${
        error instanceof SshProtocolError ? messageOf(error) : publicMessage(error)
      }`;
      if (problem !== this.#problem)
        logger.warn({ source: this.name, err: error }, "cannot get an SSH certificate");
      this.#problem = problem;
    }
    this.#listeners.changed();
  }
}

/** When a certificate is renewed, in milliseconds since the epoch. */
export function renewalAt(now: number, expiresAt: number | undefined): number {
  if (expiresAt === undefined) return Infinity;
  const life = expiresAt - now;
  // A role may give a shorter life than was asked for.
  return now + Math.max(life / 2, life - Math.max(life * RENEWAL_SHARE, RENEWAL_MS));
}

async function newPair(type: CaSettings["key_type"]): Promise<KeyPair> {
  const { privateKey } =
    type === "ed25519"
      ? await generate("ed25519")
      : type === "ecdsa"
        ? await generate("ec", { namedCurve: "P-256" })
        : await generate("rsa", { modulusLength: RSA_BITS });
  return { publicKey: publicKeyOf(privateKey), privateKey };
}
