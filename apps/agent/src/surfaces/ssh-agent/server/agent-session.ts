import { AppError, type Clock, type Logger } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import {
  MAX_AGENT_MESSAGE_BYTES,
  SESSION_BIND,
  SshProtocolError,
  decodeAgentRequest,
  describeSignedData,
  publicKeyOfBlob,
  queryAnswer,
  requestedRsaAlgorithm,
  type AgentAnswer,
  type AgentRequest,
  type Identity,
  type KnownHost,
  type SignedData,
} from "@devplat/ssh-protocol";
import { BRAND } from "../../../brand.ts";
import type { SshConfirm } from "../../../config/sections/ssh-agent-section.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { KeyRestrictions } from "../identity.ts";
import { isPeerRunning, type PeerProcess } from "../peer-process/peer-process.ts";
import { destinationOf, factsOf, hopsOf, purposeText, wayOf } from "../policy/facts.ts";
import { isForwarded, listingOf, signatureFault, type Listing, type Origin } from "../policy/permission.ts";
import { UNBOUND, bindSession, type SessionChain } from "../policy/session-chain.ts";
import type { RelayedAgent, RelayedConnection } from "../relay/relayed-agent.ts";
import type { AgentLock } from "./agent-lock.ts";
import type { Confirmations } from "./confirmations.ts";
import { keyFingerprint } from "./key-fingerprint.ts";
import type { HostDirectory } from "./host-directory.ts";
import type { OwnKey, OwnKeys } from "./own-keys.ts";
import type { SignatureLog } from "./signature-log.ts";

/** A signature waits so long while a passphrase is asked for, or while the daemon signs in again. In milliseconds. */
const SIGNATURE_TIMEOUT_MS = 30_000;
/** Keys that a client reads in one answer, as in OpenSSH. */
const MAX_LISTED_KEYS = 2048;
/** Lengths of blob and comment of a listed key. */
const IDENTITY_OVERHEAD_BYTES = 8;
const UNRESTRICTED: KeyRestrictions = {
  hosts: undefined,
  via: undefined,
  namespaces: undefined,
  confirm: undefined,
};
const FAILURE: AgentAnswer = { type: "failure" };
const SUCCESS: AgentAnswer = { type: "success" };

/** Parts that all connections share. */
export interface SessionParts {
  readonly ownKeys: OwnKeys;
  readonly lock: AgentLock;
  readonly confirmations: Confirmations;
  readonly hosts: HostDirectory;
  readonly signatures: SignatureLog;
  readonly confirm: () => SshConfirm;
  /** Called for each list that lacks keys because the client sent no session-bind. */
  readonly onWithheld: (keys: number) => void;
  readonly onChange: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keys that a socket offers. */
export interface SocketScope {
  /** Names of sources; undefined: all. */
  readonly sources: readonly string[] | undefined;
  readonly relays: readonly RelayedAgent[];
  /** Hosts that are known on this socket only. */
  readonly knownHosts: readonly KnownHost[];
}

/** An own key, as one connection sees it. */
interface VisibleKey extends OwnKey {
  readonly listing: Exclude<Listing, "withheld">;
}

/** A request to sign, with all that decides about it. */
interface SignRequest {
  readonly key: Buffer;
  readonly data: Buffer;
  readonly flags: number;
  readonly purpose: SignedData;
  readonly origin: Origin;
}

/** Who signs. */
interface Signer {
  readonly source: string;
  readonly comment: string;
  readonly restrictions: KeyRestrictions;
  sign(signal: AbortSignal): Promise<Buffer>;
}

/** The requests of one connection. They are answered one after another. */
export class AgentSession {
  readonly #parts: SessionParts;
  readonly #scope: SocketScope;
  readonly #caller: PeerProcess | undefined;
  readonly #relays: readonly RelayedConnection[];
  #chain: SessionChain = UNBOUND;

  /** @param relays the other agents of the scope that may be asked for this client */
  constructor(parts: SessionParts, scope: SocketScope, caller: PeerProcess | undefined) {
    this.#parts = parts;
    this.#scope = scope;
    this.#caller = caller;
    // An agent that asks us for its own list, or ourselves: asking on would never end.
    const isLoop =
      caller !== undefined &&
      [process.pid, ...scope.relays.map(({ serverPid }) => serverPid)].includes(caller.pid);
    this.#relays = isLoop ? [] : scope.relays.map((agent) => agent.connect());
  }

  get isForwarded(): boolean {
    return this.#chain.isBroken || this.#chain.sessions.some((session) => session.isForwarding);
  }

  /** @param message without its length */
  async answer(message: Buffer, signal: AbortSignal): Promise<AgentAnswer> {
    try {
      return await this.#answer(decodeAgentRequest(message), signal);
    } catch (error) {
      if (error instanceof SshProtocolError || error instanceof AgentRefusal || signal.aborted) {
        return FAILURE;
      }
      this.#parts.logger.error({ err: error }, "request to the SSH agent failed");
      return FAILURE;
    }
  }

  close(): void {
    for (const relay of this.#relays) relay.close();
  }

  async #answer(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const { lock } = this.#parts;
    switch (request.type) {
      case "identities":
        return { type: "identities", identities: lock.isLocked ? [] : await this.#identities(signal) };
      case "sign":
        return await this.#sign(request, signal);
      case "extension":
        return await this.#extension(request, signal);
      case "lock":
      case "unlock":
        return await this.#setLock(request);
      case "remove-all":
        return await this.#removeAll(request, signal);
      case "add":
      case "remove":
        return lock.isLocked ? FAILURE : ((await this.#relays[0]?.ask(request, signal)) ?? FAILURE);
      default:
        return FAILURE;
    }
  }

  /** Also while the agent is locked: the client does not repeat it later. */
  async #extension(
    { name, content }: AgentRequest & { type: "extension" },
    signal: AbortSignal,
  ): Promise<AgentAnswer> {
    if (name === "query") return queryAnswer(["query", SESSION_BIND]);
    if (name !== SESSION_BIND) return { type: "extension-failure" };
    const { chain, fault } = bindSession(this.#chain, content);
    const isNew = chain !== this.#chain;
    this.#chain = chain;
    // A refused one as well: another agent then knows as little about the destination.
    if (isNew) await Promise.all(this.#relays.map((relay) => relay.bind(content, signal)));
    if (fault === undefined) return SUCCESS;
    this.#parts.logger.warn({ ...this.#callerFields(), reason: fault }, "SSH session-bind refused");
    return { type: "extension-failure" };
  }

  async #setLock(request: AgentRequest & { type: "lock" | "unlock" }): Promise<AgentAnswer> {
    const { lock, ownKeys, confirmations, logger, onChange } = this.#parts;
    if (!(await this.#mayManage())) return FAILURE;
    const { passphrase, type } = request;
    const isDone = type === "lock" ? await lock.lock(passphrase) : await lock.unlock(passphrase);
    logger.info({ ...this.#callerFields(), outcome: isDone ? "done" : "refused" }, `SSH agent: ${type}`);
    if (!isDone) return FAILURE;
    if (type === "lock") {
      ownKeys.forget();
      confirmations.clear();
    }
    onChange();
    return SUCCESS;
  }

  /** A host that the agent is forwarded to, or a container with a socket of its own, must not keep the user out. */
  async #mayManage(): Promise<boolean> {
    return this.#scope.sources === undefined && !isForwarded(await this.#origin([]));
  }

  async #removeAll(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    const { lock, ownKeys, logger, onChange } = this.#parts;
    if (lock.isLocked || !(await this.#mayManage())) return FAILURE;
    ownKeys.setHidden(true);
    await Promise.all(this.#relays.map((relay) => relay.ask(request, signal)));
    logger.info(this.#callerFields(), "SSH agent: own keys hidden, keys of other agents removed");
    onChange();
    return SUCCESS;
  }

  async #identities(signal: AbortSignal): Promise<Identity[]> {
    const [{ keys }, ...relayed] = await Promise.all([
      this.#visibleKeys(true),
      ...this.#relays.map((relay) => relay.identities(signal)),
    ]);
    const own = keys.map(({ identity: { blob, comment, restrictions }, listing }) => ({
      blob,
      comment: visible(listing === "marked" ? `${comment} (${restrictionText(restrictions)})` : comment),
    }));
    const merged = new Map<string, Identity>();
    let bytes = 0;
    for (const identity of [...own, ...relayed.flat()]) {
      const name = identity.blob.toString("latin1");
      bytes += identity.blob.length + Buffer.byteLength(identity.comment) + IDENTITY_OVERHEAD_BYTES;
      // A longer answer would be refused as a whole.
      if (merged.size === MAX_LISTED_KEYS || bytes > MAX_AGENT_MESSAGE_BYTES - IDENTITY_OVERHEAD_BYTES) break;
      if (!merged.has(name)) merged.set(name, identity);
    }
    return [...merged.values()];
  }

  /** The own keys for this connection; a key of two sources is there once for each. */
  async #visibleKeys(isForList: boolean): Promise<{ keys: VisibleKey[]; origin: Origin }> {
    const all = await this.#parts.ownKeys.list();
    const { sources } = this.#scope;
    const offered = all.filter(({ source }) => sources === undefined || sources.includes(source));
    const origin = await this.#origin(
      offered.flatMap(({ identity: { restrictions } }) => [
        ...(restrictions.hosts ?? []),
        ...(restrictions.via ?? []),
      ]),
    );
    const keys = offered.flatMap((key): VisibleKey[] => {
      const listing = listingOf(key.identity.restrictions, origin);
      return listing === "withheld" ? [] : [{ ...key, listing }];
    });
    const withheld = offered.length - keys.length;
    if (isForList && origin.kind === "unknown" && withheld > 0) this.#parts.onWithheld(withheld);
    return { keys: keys.toSorted(byListing), origin };
  }

  async #origin(patterns: readonly string[]): Promise<Origin> {
    return await this.#parts.hosts.originOf(this.#chain, this.#caller, {
      knownHosts: this.#scope.knownHosts,
      patterns,
    });
  }

  async #sign(
    { key, data, flags }: AgentRequest & { type: "sign" },
    signal: AbortSignal,
  ): Promise<AgentAnswer> {
    const { keys, origin } = await this.#visibleKeys(false);
    const request: SignRequest = { key, data, flags, purpose: describeSignedData(data), origin };
    const own = keys.filter(({ identity }) => identity.blob.equals(key));
    let signer: Signer | undefined;
    let refusal: string | undefined;
    try {
      if (this.#parts.lock.isLocked) throw new AgentRefusal("locked", "the agent is locked");
      signer = own.length > 0 ? ownSigner(own, request) : await this.#relaySigner(request, signal);
      if (signer === undefined) {
        throw new AgentRefusal("key_unknown", "the key is not offered to this connection");
      }
      const signature = await this.#signWith(signer, request, signal);
      return { type: "signature", signature };
    } catch (error) {
      refusal = refusalText(error, own);
      if (refusal === undefined) throw error;
      return FAILURE;
    } finally {
      this.#parts.signatures.note({
        fingerprint: keyFingerprint(key),
        source: signer?.source ?? own[0]?.source,
        purpose: purposeText(request.purpose),
        destination: destinationOf(origin),
        forwarded: isForwarded(origin),
        through: hopsOf(origin),
        ...this.#callerFields(),
        refusal,
      });
      this.#parts.onChange();
    }
  }

  /** @throws AgentRefusal */
  async #signWith(signer: Signer, request: SignRequest, signal: AbortSignal): Promise<Buffer> {
    const { key, purpose, origin } = request;
    const fault = signatureFault({ key, restrictions: signer.restrictions }, origin, purpose);
    if (fault !== undefined) throw new AgentRefusal("key_withheld", fault);
    const confirm = signer.restrictions.confirm ?? this.#parts.confirm();
    if (confirm === "always" || (confirm === "forwarded" && isForwarded(origin))) {
      await this.#confirm(signer, request, signal);
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(SIGNATURE_TIMEOUT_MS)]);
    const signature = await signer.sign(limit);
    if (this.#parts.lock.isLocked) throw new AgentRefusal("locked", "the agent was locked");
    if (!(await isPeerRunning(this.#caller))) {
      throw new AgentRefusal("key_withheld", "the program that asked has ended");
    }
    return signature;
  }

  async #confirm(signer: Signer, { key, origin, purpose }: SignRequest, signal: AbortSignal): Promise<void> {
    const isPermitted = await this.#parts.confirmations.confirm(
      {
        question: {
          comment: visible(signer.comment),
          fingerprint: keyFingerprint(key),
          facts: factsOf(this.#caller, origin, purpose),
        },
        caller: this.#caller,
        destination: wayOf(origin, purpose),
      },
      signal,
    );
    if (!isPermitted) throw new AgentRefusal("not_confirmed", "the user has not confirmed the signature");
  }

  async #relaySigner({ key, data, flags }: SignRequest, signal: AbortSignal): Promise<Signer | undefined> {
    for (const relay of this.#relays) {
      const identity = (await relay.identities(signal)).find(({ blob }) => blob.equals(key));
      if (identity === undefined) continue;
      return {
        source: relay.agent.path,
        comment: identity.comment,
        restrictions: UNRESTRICTED,
        async sign(limit) {
          if (isRsaKey(key)) requestedRsaAlgorithm(flags);
          const answer = await relay.ask({ type: "sign", key, data, flags }, limit);
          if (answer.type === "signature") return answer.signature;
          throw new AgentRefusal("key_withheld", "the other agent refused the signature");
        },
      };
    }
    return undefined;
  }

  #callerFields(): { pid: number | undefined; program: string | undefined } {
    const caller = this.#caller;
    return { pid: caller?.pid, program: caller?.program ?? caller?.name };
  }
}

/** The same key of several sources may be used if one of them permits it. */
function ownSigner(keys: readonly VisibleKey[], request: SignRequest): Signer | undefined {
  const { key, data, flags, purpose, origin } = request;
  const permitted = keys.find(
    ({ identity: { restrictions } }) => signatureFault({ key, restrictions }, origin, purpose) === undefined,
  );
  const chosen = permitted ?? keys[0];
  if (chosen === undefined) return undefined;
  const { source, identity } = chosen;
  return {
    source,
    comment: identity.comment,
    restrictions: identity.restrictions,
    async sign(limit) {
      const algorithm = isRsaKey(key) ? requestedRsaAlgorithm(flags) : undefined;
      const hash = algorithm && (algorithm === "rsa-sha2-256" ? "sha256" : "sha512");
      return await identity.sign(data, hash, limit);
    },
  };
}

/** Why a signature was refused; undefined for a fault of the program. @param keys the own keys that were asked for */
function refusalText(error: unknown, keys: readonly VisibleKey[]): string | undefined {
  if (error instanceof AppError) return error.message;
  const isTimeout = error instanceof DOMException && ["AbortError", "TimeoutError"].includes(error.name);
  if (!isTimeout) return undefined;
  return keys.some(({ identity }) => identity.state === "needs-passphrase")
    ? `its passphrase was not typed in time; '${BRAND.command} keys unlock' opens it`
    : "it was not possible in time";
}

/** Keys that log in to this host come before others, so that they are among the few that a server lets a client try. */
function byListing(one: VisibleKey, other: VisibleKey): number {
  return Number(one.listing === "marked") - Number(other.listing === "marked");
}

function restrictionText({ hosts, via }: KeyRestrictions): string {
  const way = via === undefined || via.length === 0 ? "" : ` via ${via.join(", ")}`;
  return `only for ${hosts?.join(", ") ?? "hosts"}${way}`;
}

function isRsaKey(blob: Buffer): boolean {
  return publicKeyOfBlob(blob).type === "ssh-rsa";
}
