import { randomBytes } from "node:crypto";
import { AgentError } from "../../errors.ts";
import type { TpmDevice } from "./device.ts";

// Structures and codes: TCG, Trusted Platform Module Library, part 2 (structures) and part 3 (commands), version 1.59.

const ST_NO_SESSIONS = 0x8001;
const ST_SESSIONS = 0x8002;
const RH_OWNER = 0x40000001;
const RH_NULL = 0x40000007;
const RS_PASSWORD = 0x40000009;
const ALG_NULL = 0x0010;
const ALG_SHA256 = 0x000b;
const COMMANDS = {
  createPrimary: 0x131,
  create: 0x153,
  load: 0x157,
  unseal: 0x15e,
  flushContext: 0x165,
  startAuthSession: 0x176,
  policyPcr: 0x17f,
  policyGetDigest: 0x189,
} as const;
const SESSION_POLICY = 1;
const SESSION_TRIAL = 3;
const RC_RETRY = 0x922;
/** Format-one errors carry the number of the parameter or session in these bits. */
const RC_NUMBER_MASK = 0xf40;
const RC_POLICY_FAIL = 0x09d;
/** Tries of a command that the TPM asks to repeat. */
const MAX_TRIES = 5;

/** Storage key: P-256, restricted to decryption, AES-128 in CFB mode (TCG EK credential profile, template of the SRK). */
const STORAGE_KEY = Buffer.concat([
  u16(0x0023, ALG_SHA256),
  // restricted, decrypt, noDA, userWithAuth, sensitiveDataOrigin, fixedParent, fixedTPM
  u32(0x00030472),
  u16(0, 0x0006, 128, 0x0043, ALG_NULL, 0x0003, ALG_NULL, 0, 0),
]);

/** A small secret that only the TPM which made it can open, and only while its registers hold the same values. */
export interface SealedObject {
  readonly publicPart: Buffer;
  readonly privatePart: Buffer;
}

/** Sealing and unsealing by a TPM 2.0. Every call throws AgentError `seal_failed`. */
export class Tpm {
  readonly #device: TpmDevice;

  constructor(device: TpmDevice) {
    this.#device = device;
  }

  /**
   * @param secret at most 128 bytes
   * @param pcrs registers of the SHA-256 bank that must not change; none binds to the TPM alone
   */
  async seal(secret: Buffer, pcrs: readonly number[]): Promise<SealedObject> {
    const policy = pcrs.length === 0 ? Buffer.alloc(0) : await this.#policyDigest(pcrs);
    return this.#withStorageKey(async (parent) => {
      // fixedTPM, fixedParent, noDA, and userWithAuth unless a policy replaces it.
      const attributes = pcrs.length === 0 ? 0x452 : 0x412;
      const template = Buffer.concat([
        u16(0x0008, ALG_SHA256),
        u32(attributes),
        sized(policy),
        u16(ALG_NULL, 0),
      ]);
      const sensitive = Buffer.concat([u16(0), sized(secret)]);
      const body = [sized(sensitive), sized(template), u16(0), u32(0)];
      const response = await this.#authorised(COMMANDS.create, parent, RS_PASSWORD, body);
      const [privatePart, rest] = unsized(response);
      return { privatePart, publicPart: unsized(rest)[0] };
    });
  }

  async unseal({ publicPart, privatePart }: SealedObject, pcrs: readonly number[]): Promise<Buffer> {
    return this.#withStorageKey(async (parent) => {
      const body = [sized(privatePart), sized(publicPart)];
      const loaded = await this.#command(ST_SESSIONS, COMMANDS.load, [
        u32(parent),
        password(RS_PASSWORD),
        ...body,
      ]);
      return this.#released(loaded.readUInt32BE(0), async (object) => {
        if (pcrs.length === 0)
          return unsized(await this.#authorised(COMMANDS.unseal, object, RS_PASSWORD, []))[0];
        return this.#withSession(
          SESSION_POLICY,
          pcrs,
          async (session) => unsized(await this.#authorised(COMMANDS.unseal, object, session, []))[0],
        );
      });
    });
  }

  #policyDigest(pcrs: readonly number[]): Promise<Buffer> {
    return this.#withSession(
      SESSION_TRIAL,
      pcrs,
      async (session) =>
        unsized(await this.#command(ST_NO_SESSIONS, COMMANDS.policyGetDigest, [u32(session)]))[0],
    );
  }

  async #withSession<T>(
    type: number,
    pcrs: readonly number[],
    action: (session: number) => Promise<T>,
  ): Promise<T> {
    const body = [
      u32(RH_NULL, RH_NULL),
      sized(randomBytes(16)),
      u16(0),
      Buffer.from([type]),
      u16(ALG_NULL, ALG_SHA256),
    ];
    const started = await this.#command(ST_NO_SESSIONS, COMMANDS.startAuthSession, body);
    return this.#released(started.readUInt32BE(0), async (session) => {
      await this.#command(ST_NO_SESSIONS, COMMANDS.policyPcr, [u32(session), u16(0), selection(pcrs)]);
      return action(session);
    });
  }

  /** The same key each time: it is derived from the TPM's own seed. */
  async #withStorageKey<T>(action: (handle: number) => Promise<T>): Promise<T> {
    const sensitive = sized(u16(0, 0));
    const body = [u32(RH_OWNER), password(RS_PASSWORD), sensitive, sized(STORAGE_KEY), u16(0), u32(0)];
    const response = await this.#command(ST_SESSIONS, COMMANDS.createPrimary, body);
    return this.#released(response.readUInt32BE(0), action);
  }

  /** Room in a TPM is for three objects. */
  async #released<T>(handle: number, action: (handle: number) => Promise<T>): Promise<T> {
    try {
      return await action(handle);
    } finally {
      // The TPM has already removed a policy session after its use.
      await this.#command(ST_NO_SESSIONS, COMMANDS.flushContext, [u32(handle)]).catch(() => undefined);
    }
  }

  /** The parameters of the response to a command on one object. */
  async #authorised(code: number, handle: number, session: number, body: readonly Buffer[]): Promise<Buffer> {
    const response = await this.#command(ST_SESSIONS, code, [u32(handle), password(session), ...body]);
    return response.subarray(4, 4 + response.readUInt32BE(0));
  }

  async #command(tag: number, code: number, parts: readonly Buffer[]): Promise<Buffer> {
    const body = Buffer.concat(parts);
    const command = Buffer.concat([u16(tag), u32(10 + body.length, code), body]);
    for (let tries = 1; ; tries++) {
      const response = await this.#device(command);
      const result = response.length >= 10 ? response.readUInt32BE(6) : -1;
      if (result === 0) return response.subarray(10);
      if (result !== RC_RETRY || tries === MAX_TRIES) throw failure(result);
    }
  }
}

function failure(result: number): AgentError {
  if ((result & ~RC_NUMBER_MASK) === RC_POLICY_FAIL) {
    return new AgentError(
      "seal_failed",
      "the TPM does not unseal: this host has started with other software",
      {
        hint: "The registers of store.mtls.seal_to_pcrs hold other values now. Sign in again to seal it again.",
      },
    );
  }
  return new AgentError("seal_failed", `the TPM refused (code 0x${(result >>> 0).toString(16)})`, {
    hint: "Data that another TPM has sealed cannot be opened; sign in again to seal it again.",
  });
}

/** An authorisation by an empty password, or by a policy session that continues. */
function password(session: number): Buffer {
  const area = Buffer.concat([u32(session), u16(0), Buffer.from([session === RS_PASSWORD ? 0 : 1]), u16(0)]);
  return Buffer.concat([u32(area.length), area]);
}

function selection(pcrs: readonly number[]): Buffer {
  const bits = pcrs.reduce((sum, pcr) => sum | (1 << pcr), 0);
  return Buffer.concat([
    u32(1),
    u16(ALG_SHA256),
    Buffer.from([3, bits & 0xff, (bits >> 8) & 0xff, (bits >> 16) & 0xff]),
  ]);
}

function sized(content: Buffer): Buffer {
  return Buffer.concat([u16(content.length), content]);
}

function unsized(bytes: Buffer): [content: Buffer, rest: Buffer] {
  const end = 2 + bytes.readUInt16BE(0);
  return [bytes.subarray(2, end), bytes.subarray(end)];
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index);
  return bytes;
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * index);
  return bytes;
}
