import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import {
  AgentFrameReader,
  decodeAgentAnswer,
  encodeAgentFrame,
  encodeAgentRequest,
  type AgentRequest,
} from "@devplat/ssh-protocol";
import { summarize } from "./statistics.ts";

/** Median time of a request to an SSH agent in microseconds, one after another on one connection. Every answer is decoded. */
export async function medianOf(socket: string, request: AgentRequest, requests: number): Promise<number> {
  const connection = createConnection(socket);
  await once(connection, "connect");
  const message = encodeAgentFrame(encodeAgentRequest(request));
  const times: number[] = [];
  for (let count = 0; count < requests; count++) {
    const start = performance.now();
    await answerTo(connection, message);
    times.push((performance.now() - start) * 1000);
  }
  connection.destroy();
  return summarize(times).median;
}

async function answerTo(connection: Socket, message: Buffer): Promise<void> {
  const reader = new AgentFrameReader();
  connection.write(message);
  for (;;) {
    const [chunk] = (await once(connection, "data")) as [Buffer];
    reader.push(chunk);
    const next = reader.next();
    if (next === undefined) continue;
    const { type } = decodeAgentAnswer(next);
    if (type !== "signature" && type !== "identities") throw new Error(`the agent answered ${type}`);
    return;
  }
}
