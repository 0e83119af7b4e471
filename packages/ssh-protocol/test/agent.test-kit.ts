import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { tempFolder } from "@devplat/testkit";
import {
  AgentFrameReader,
  SshProtocolError,
  decodeAgentAnswer,
  decodeAgentRequest,
  encodeAgentAnswer,
  encodeAgentFrame,
  encodeAgentRequest,
  encodePublicKey,
  publicKeyOfBlob,
  requestedRsaAlgorithm,
  sign,
  type AddedKey,
  type AgentAnswer,
  type AgentRequest,
} from "../src/index.ts";

/** A small agent of this package on a Unix socket, for the programs of OpenSSH. */
export interface TestAgent extends AsyncDisposable {
  readonly socket: string;
  /** Messages in the order in which they arrived. */
  readonly requests: readonly AgentRequest[];
}

/** Starts the agent with keys, and adds and removes keys as clients request. */
export async function startTestAgent(initial: readonly AddedKey[] = []): Promise<TestAgent> {
  const folder = await tempFolder("agent");
  const socket = join(folder.path, "agent.sock");
  const requests: AgentRequest[] = [];
  const keys = new Map<string, AddedKey>();
  const blobOf = (key: AddedKey): Buffer => key.certificate ?? encodePublicKey(key.publicKey);
  const add = (key: AddedKey): void => void keys.set(blobOf(key).toString("hex"), key);
  initial.forEach(add);

  const answer = (request: AgentRequest): AgentAnswer => {
    requests.push(request);
    switch (request.type) {
      case "identities":
        return {
          type: "identities",
          identities: [...keys.values()].map((key) => ({ blob: blobOf(key), comment: key.comment })),
        };
      case "sign": {
        const key = keys.get(request.key.toString("hex"));
        if (key === undefined) return { type: "failure" };
        const isRsa = publicKeyOfBlob(request.key).type === "ssh-rsa";
        const algorithm = isRsa ? requestedRsaAlgorithm(request.flags) : undefined;
        return { type: "signature", signature: sign(key, request.data, algorithm) };
      }
      case "add":
        add(request.key);
        return { type: "success" };
      case "remove":
        return { type: keys.delete(request.key.toString("hex")) ? "success" : "failure" };
      case "remove-all":
        keys.clear();
        return { type: "success" };
      case "lock":
      case "unlock":
        return { type: "success" };
      case "extension":
        return { type: request.name === "session-bind@openssh.com" ? "success" : "extension-failure" };
      default:
        return { type: "failure" };
    }
  };

  const sockets = new Set<Socket>();
  const server = createServer((connection) => {
    sockets.add(connection);
    const reader = new AgentFrameReader();
    connection.on("close", () => sockets.delete(connection));
    connection.on("error", () => {});
    connection.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      try {
        for (let message = reader.next(); message !== undefined; message = reader.next()) {
          connection.write(encodeAgentFrame(encodeAgentAnswer(answered(message))));
        }
      } catch {
        connection.destroy();
      }
    });
  });
  const answered = (message: Buffer): AgentAnswer => {
    try {
      return answer(decodeAgentRequest(message));
    } catch (error) {
      if (error instanceof SshProtocolError) return { type: "failure" };
      throw error;
    }
  };
  server.listen(socket);
  await once(server, "listening");
  return {
    socket,
    requests,
    async [Symbol.asyncDispose]() {
      for (const connection of sockets) connection.destroy();
      server.close();
      await once(server, "close");
      await folder.remove();
    },
  };
}

/** Sends bytes to an agent and collects whole messages until it has sent `count` or closed the connection. */
export async function exchange(socket: string, bytes: Uint8Array, count: number): Promise<Buffer[]> {
  const connection = createConnection(socket);
  const reader = new AgentFrameReader();
  const messages: Buffer[] = [];
  try {
    connection.write(bytes);
    for await (const chunk of connection) {
      reader.push(chunk as Buffer);
      for (let message = reader.next(); message !== undefined; message = reader.next())
        messages.push(message);
      if (messages.length >= count) break;
    }
  } finally {
    connection.destroy();
  }
  return messages;
}

/** Asks an agent one thing. */
export async function ask(socket: string, request: AgentRequest): Promise<AgentAnswer> {
  const [message] = await exchange(socket, encodeAgentFrame(encodeAgentRequest(request)), 1);
  if (message === undefined) throw new Error("the agent closed the connection");
  return decodeAgentAnswer(message);
}
