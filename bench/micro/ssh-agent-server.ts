/** An SSH agent with one key and nothing around the codec: `node bench/micro/ssh-agent-server.ts KEY SOCKET`. */
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import {
  AgentFrameReader,
  decodeAgentRequest,
  encodeAgentAnswer,
  encodeAgentFrame,
  encodePublicKey,
  readPrivateKey,
  sign,
  type AgentAnswer,
  type AgentRequest,
} from "@devplat/ssh-protocol";

const [, , keyFile = "", socket = ""] = process.argv;
const key = readPrivateKey(readFileSync(keyFile, "utf8"));
if (key.state !== "open") throw new Error("the key has a passphrase");
const { comment } = key;
const blob = encodePublicKey(key.publicKey);

function answer(request: AgentRequest): AgentAnswer {
  if (request.type === "identities") return { type: "identities", identities: [{ blob, comment }] };
  if (request.type !== "sign" || key.state !== "open" || !request.key.equals(blob))
    return { type: "failure" };
  return { type: "signature", signature: sign(key, request.data) };
}

createServer((connection) => {
  const reader = new AgentFrameReader();
  connection.on("data", (chunk: Buffer) => {
    reader.push(chunk);
    for (let message = reader.next(); message !== undefined; message = reader.next()) {
      connection.write(encodeAgentFrame(encodeAgentAnswer(answer(decodeAgentRequest(message)))));
    }
  });
}).listen(socket);
