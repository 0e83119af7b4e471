import { Secret } from "@devplat/base";
import { refusedSha1, type RsaSignatureAlgorithm } from "../signature.ts";
import { WireReader, WireWriter } from "../wire.ts";
import { readAddedKey, writeAddedKey, type AddedKey } from "./added-key.ts";
import { readConstraints, writeConstraints, type KeyConstraint } from "./constraint.ts";

/** Numbers of the requests (draft-ietf-sshm-ssh-agent section 6.1). */
const REQUESTS = {
  identities: 11,
  sign: 13,
  add: 17,
  remove: 18,
  removeAll: 19,
  lock: 22,
  unlock: 23,
  addConstrained: 25,
  extension: 27,
} as const;

/** Flags of a request to sign (section 6.3). */
const RSA_SHA2_256 = 2;
const RSA_SHA2_512 = 4;

/** A request of a client to an agent. Key blobs may be certificates. */
export type AgentRequest =
  | { readonly type: "identities" }
  | { readonly type: "sign"; readonly key: Buffer; readonly data: Buffer; readonly flags: number }
  | { readonly type: "add"; readonly key: AddedKey; readonly constraints: readonly KeyConstraint[] }
  | { readonly type: "remove"; readonly key: Buffer }
  | { readonly type: "remove-all" }
  | { readonly type: "lock" | "unlock"; readonly passphrase: Secret<Buffer> }
  | { readonly type: "extension"; readonly name: string; readonly content: Buffer }
  /** Answered with a failure. */
  | { readonly type: "unknown"; readonly number: number; readonly content: Buffer };

/**
 * Decodes a message without its length. The frame stays known after an error: answer with a failure.
 *
 * @throws SshProtocolError
 */
export function decodeAgentRequest(message: Buffer): AgentRequest {
  const reader = new WireReader(message);
  const request = readRequest(reader);
  reader.end();
  return request;
}

/** Encodes a message without its length. */
export function encodeAgentRequest(request: AgentRequest): Buffer {
  const writer = new WireWriter();
  switch (request.type) {
    case "identities":
      writer.byte(REQUESTS.identities);
      break;
    case "sign":
      writer.byte(REQUESTS.sign).string(request.key).string(request.data).uint32(request.flags);
      break;
    case "add":
      writer.byte(request.constraints.length === 0 ? REQUESTS.add : REQUESTS.addConstrained);
      writeAddedKey(request.key, writer);
      writeConstraints(request.constraints, writer);
      break;
    case "remove":
      writer.byte(REQUESTS.remove).string(request.key);
      break;
    case "remove-all":
      writer.byte(REQUESTS.removeAll);
      break;
    case "lock":
    case "unlock":
      writer.byte(REQUESTS[request.type]).string(request.passphrase.reveal());
      break;
    case "extension":
      writer.byte(REQUESTS.extension).string(request.name).raw(request.content);
      break;
    case "unknown":
      writer.byte(request.number).raw(request.content);
  }
  return writer.bytes();
}

/**
 * The algorithm that the flags of a request ask for, if the key is an RSA key. OpenSSH prefers SHA-256, too.
 *
 * @throws SshProtocolError `refused_algorithm` for no flag, which means SHA-1
 */
export function requestedRsaAlgorithm(flags: number): RsaSignatureAlgorithm {
  if ((flags & RSA_SHA2_256) !== 0) return "rsa-sha2-256";
  if ((flags & RSA_SHA2_512) !== 0) return "rsa-sha2-512";
  throw refusedSha1();
}

function readRequest(reader: WireReader): AgentRequest {
  const number = reader.byte();
  switch (number) {
    case REQUESTS.identities:
      return { type: "identities" };
    case REQUESTS.sign:
      return { type: "sign", key: reader.string(), data: reader.string(), flags: reader.uint32() };
    case REQUESTS.add:
      return { type: "add", key: readAddedKey(reader), constraints: [] };
    case REQUESTS.addConstrained:
      return { type: "add", key: readAddedKey(reader), constraints: readConstraints(reader) };
    case REQUESTS.remove:
      return { type: "remove", key: reader.string() };
    case REQUESTS.removeAll:
      return { type: "remove-all" };
    case REQUESTS.lock:
      return { type: "lock", passphrase: new Secret(reader.string()) };
    case REQUESTS.unlock:
      return { type: "unlock", passphrase: new Secret(reader.string()) };
    case REQUESTS.extension:
      return { type: "extension", name: reader.name(), content: reader.rest() };
    default:
      return { type: "unknown", number, content: reader.rest() };
  }
}
