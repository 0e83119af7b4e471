import { WireReader, WireWriter } from "../wire.ts";

/** Numbers of the answers (draft-ietf-sshm-ssh-agent section 6.1). */
const ANSWERS = {
  failure: 5,
  success: 6,
  identities: 12,
  signature: 14,
  "extension-failure": 28,
  "extension-response": 29,
} as const;

/** A key that an agent offers. */
export interface Identity {
  /** Blob of a key or certificate. */
  readonly blob: Buffer;
  readonly comment: string;
}

/** An answer of an agent. */
export type AgentAnswer =
  /** `extension-failure`: the agent knows the extension, and the request failed. */
  | { readonly type: "failure" | "success" | "extension-failure" }
  | { readonly type: "identities"; readonly identities: readonly Identity[] }
  | { readonly type: "signature"; readonly signature: Buffer }
  | { readonly type: "extension-response"; readonly name: string; readonly content: Buffer }
  | { readonly type: "unknown"; readonly number: number; readonly content: Buffer };

/** Decodes a message without its length. @throws SshProtocolError */
export function decodeAgentAnswer(message: Buffer): AgentAnswer {
  const reader = new WireReader(message);
  const answer = readAnswer(reader);
  reader.end();
  return answer;
}

/** Encodes a message without its length. */
export function encodeAgentAnswer(answer: AgentAnswer): Buffer {
  if (answer.type === "unknown") return new WireWriter().byte(answer.number).raw(answer.content).bytes();
  const writer = new WireWriter().byte(ANSWERS[answer.type]);
  switch (answer.type) {
    case "identities":
      writer.uint32(answer.identities.length);
      for (const { blob, comment } of answer.identities) writer.string(blob).string(comment);
      break;
    case "signature":
      writer.string(answer.signature);
      break;
    case "extension-response":
      writer.string(answer.name).raw(answer.content);
      break;
    default:
  }
  return writer.bytes();
}

/** The answer to the extension `query`: names of the extensions that the agent has (section 5.8.1). */
export function queryAnswer(extensions: readonly string[]): AgentAnswer {
  const content = new WireWriter();
  for (const name of extensions) content.string(name);
  return { type: "extension-response", name: "query", content: content.bytes() };
}

function readAnswer(reader: WireReader): AgentAnswer {
  const number = reader.byte();
  switch (number) {
    case ANSWERS.failure:
      return { type: "failure" };
    case ANSWERS.success:
      return { type: "success" };
    case ANSWERS["extension-failure"]:
      return { type: "extension-failure" };
    case ANSWERS.identities: {
      const identities: Identity[] = [];
      // The number of keys is the peer's claim: the bytes decide how many can be read.
      for (let count = reader.uint32(); count > 0; count--) {
        identities.push({ blob: reader.string(), comment: reader.text() });
      }
      return { type: "identities", identities };
    }
    case ANSWERS.signature:
      return { type: "signature", signature: reader.string() };
    case ANSWERS["extension-response"]:
      return { type: "extension-response", name: reader.name(), content: reader.rest() };
    default:
      return { type: "unknown", number, content: reader.rest() };
  }
}
