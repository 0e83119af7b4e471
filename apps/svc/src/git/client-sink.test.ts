import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import { breakOffDownloads } from "../http/send-file/broken-downloads.test-kit.ts";
import { FileSender } from "../http/send-file/file-sender.ts";
import { ClientSink } from "./client-sink.ts";

/** Milliseconds of the idle limit. */
const IDLE_MS = 30;

/** A response whose client takes a write when it is told to. */
class SlowResponse extends EventEmitter {
  destroyed = false;
  readonly taken: ((error?: Error) => void)[] = [];

  write(_bytes: Buffer, done: (error?: Error) => void): boolean {
    this.taken.push(done);
    return false;
  }

  end(): void {
    // The last bytes are never taken.
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

describe("ClientSink", () => {
  const fresh = (): { response: SlowResponse; sink: ClientSink } => {
    const response = new SlowResponse();
    return { response, sink: new ClientSink(response as unknown as ServerResponse, IDLE_MS) };
  };
  // The sink's timers do not keep a process alive.
  const closed = async (response: SlowResponse): Promise<void> => {
    const alive = setInterval(() => undefined, 1000);
    try {
      await once(response, "close", { signal: AbortSignal.timeout(60_000) });
    } finally {
      clearInterval(alive);
    }
  };

  it("the time limit of a second write goes on when the first write completes", async () => {
    const { response, sink } = fresh();
    const first = sink.writeThrough(Buffer.alloc(1));
    const second = sink.writeThrough(Buffer.alloc(1));
    second.catch(() => undefined);
    response.taken[0]?.();
    await first;
    await closed(response);
    await assert.rejects(second, { code: "client_gone" });
  });

  it("a failed write means that the client left, even before the connection ends", async () => {
    const { response, sink } = fresh();
    const write = sink.writeThrough(Buffer.alloc(1));
    response.taken[0]?.(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    await assert.rejects(write, { code: "client_gone" });
    response.destroy();
  });

  it("the limit counts until the last bytes of a response are taken", async () => {
    const { response, sink } = fresh();
    sink.end();
    await closed(response);
    assert.equal(response.destroyed, true);
  });

  it("the limit does not count while nothing is on its way", async () => {
    const { response, sink } = fresh();
    const write = sink.writeThrough(Buffer.alloc(1));
    response.taken[0]?.();
    await write;
    await new Promise((resolve) => setTimeout(resolve, 4 * IDLE_MS));
    assert.equal(response.destroyed, false);
  });
});

describe("files that a ClientSink sends", () => {
  it("no byte of one file reaches a client of the other when downloads are broken off", async () => {
    const sender = new FileSender();
    const ways = { direct: 0, thread: 0 };
    // Both ways, in turn: the thread takes what the limit of the other way leaves.
    const begin = sender.direct.bind(sender);
    sender.direct = (socket, range) => {
      const direct = (ways.direct + ways.thread) % 3 === 0 ? undefined : begin(socket, range);
      ways[direct === undefined ? "thread" : "direct"]++;
      return direct;
    };
    try {
      await breakOffDownloads(async (response, range) => {
        response.flushHeaders();
        const whole = new ClientSink(response).sendFile(sender, range);
        return { isOpen: true, whole: whole.then(({ end }) => end === "sent") };
      });
      assert.ok(ways.direct > 0 && ways.thread > 0, JSON.stringify(ways));
    } finally {
      await sender.close();
    }
  });
});
