import { AppError, TimeLimit } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import {
  describeSignedData,
  publicKeyOfBlob,
  requestedRsaAlgorithm,
  type AgentAnswer,
  type AgentRequest,
  type SignedData,
} from "@devplat/ssh-protocol";
import { BRAND } from "../../../brand.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { KeyRestrictions } from "../identity.ts";
import { isPeerRunning } from "../peer-process/peer-process.ts";
import { destinationOf, factsOf, hopsOf, purposeText, wayOf } from "../policy/facts.ts";
import { isForwarded, signatureFault, type Origin } from "../policy/permission.ts";
import type { VisibleKey } from "./connection-keys.ts";
import { callerFields, type Connection, type SessionParts } from "./connection-parts.ts";
import { keyFingerprint } from "./key-fingerprint.ts";

/** A signature waits so long while a passphrase is asked for, or while the daemon signs in again. In milliseconds. */
const SIGNATURE_TIMEOUT_MS = 30_000;
const UNRESTRICTED: KeyRestrictions = {
  hosts: undefined,
  via: undefined,
  namespaces: undefined,
  confirm: undefined,
};

const FAILURE: AgentAnswer = { type: "failure" };

type SigningParts = Pick<
  SessionParts,
  "lock" | "confirm" | "confirmations" | "signatures" | "onChange" | "clock"
>;

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

/** Signs for one connection, and writes each signature and each refusal into the log. */
export class Signing {
  readonly #parts: SigningParts;
  readonly #connection: Connection;

  constructor(parts: SigningParts, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
  }

  /** @param seen the own keys that the connection sees, and where its requests come from */
  async answer(
    { key, data, flags }: AgentRequest & { type: "sign" },
    { keys, origin }: { readonly keys: readonly VisibleKey[]; readonly origin: Origin },
    signal: AbortSignal,
  ): Promise<AgentAnswer> {
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
        ...callerFields(this.#connection),
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
    using limit = new TimeLimit(this.#parts.clock, SIGNATURE_TIMEOUT_MS, signal);
    const signature = await signer.sign(limit.signal);
    if (this.#parts.lock.isLocked) throw new AgentRefusal("locked", "the agent was locked");
    if (!(await isPeerRunning(this.#connection.caller))) {
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
          facts: factsOf(this.#connection.caller, origin, purpose),
        },
        caller: this.#connection.caller,
        destination: wayOf(origin, purpose),
      },
      signal,
    );
    if (!isPermitted) throw new AgentRefusal("not_confirmed", "the user has not confirmed the signature");
  }

  async #relaySigner({ key, data, flags }: SignRequest, signal: AbortSignal): Promise<Signer | undefined> {
    for (const relay of this.#connection.relays) {
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

function isRsaKey(blob: Buffer): boolean {
  return publicKeyOfBlob(blob).type === "ssh-rsa";
}
