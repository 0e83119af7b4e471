import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { postBytes } from "./kept-connection.ts";
import { HEADERS } from "./raw-fetch.ts";

/** Bytes of a read: about one read in a second and a half for each client. */
const READ_BYTES = 64 * 1024;
/** Milliseconds between two looks whether all have begun. */
const LOOK_MS = 50;

/** Form of many clients that read slowly. */
export interface SlowReaders {
  readonly url: string;
  /** Body to post. */
  readonly body: Buffer;
  readonly count: number;
  readonly bytesPerSecond: number;
}

/**
 * Opens connections that post the same request and read its response slowly, and keeps them while `work` runs.
 *
 * @throws Error if a connection ends before `work` does
 */
export async function withSlowReaders<Result>(
  { url, body, count, bytesPerSecond }: SlowReaders,
  work: () => Promise<Result>,
): Promise<Result> {
  const { hostname, port } = new URL(url);
  const request = postBytes(url, HEADERS, body);
  const sockets: Socket[] = [];
  const state = { begun: 0, ended: 0 };
  // Nobody looks at what is read.
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let index = 0; index < count; index++) {
    let isFirst = true;
    const callback = (bytes: number): boolean => {
      if (isFirst) state.begun++;
      isFirst = false;
      setTimeout(() => socket.resume(), (bytes * 1000) / bytesPerSecond);
      return false;
    };
    const socket: Socket = connect({ host: hostname, port: Number(port), onread: { buffer, callback } });
    socket.on("error", () => undefined);
    socket.once("close", () => state.ended++);
    socket.write(request);
    sockets.push(socket);
  }
  try {
    while (state.begun < count && state.ended === 0) await sleep(LOOK_MS);
    const result = await work();
    if (state.ended > 0) throw new Error(`${state.ended} of ${count} slow readers lost their connection`);
    return result;
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}
