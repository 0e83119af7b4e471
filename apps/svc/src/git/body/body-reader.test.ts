import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { SMALL_BODY_BYTES } from "../../http/server/held-bytes.ts";
import { BodyReaders, type WholeBody } from "./body-reader.ts";
import { GitError } from "../../upstream/errors.ts";

const MIB = 2 ** 20;
const LIMITS = { maxBytes: 2 * MIB, heldBytes: 4 * MIB };

/** A body that arrives as the test says. */
interface PlayedBody {
  /** Rejects while it arrives, or resolves after its end. */
  readonly held: Promise<WholeBody>;
  arrive(bytes: number): Promise<void>;
  end(): Promise<WholeBody>;
}

function begin(bodies: BodyReaders, client: string): PlayedBody {
  const stream = new PassThrough({ highWaterMark: LIMITS.heldBytes });
  const request = Object.assign(stream, { headers: {}, complete: false });
  const held = bodies.read(request as unknown as IncomingMessage, client);
  held.catch(() => undefined);
  return {
    held,
    arrive: async (bytes) => new Promise((resolve) => stream.write(Buffer.alloc(bytes), () => resolve())),
    async end() {
      request.complete = true;
      stream.end();
      return held;
    },
  };
}

/** Reads a whole body and releases it immediately. */
async function whole(bodies: BodyReaders, client: string, bytes: number): Promise<number> {
  const body = begin(bodies, client);
  await body.arrive(bytes);
  const held = await body.end();
  held.release();
  return held.bytes.length;
}

describe("bodies of commands that are held concurrently", () => {
  const busy = (error: unknown): boolean => error instanceof GitError && error.code === "busy";

  it("large ones that never end do not block small ones of any sender [svc 11.9]", async () => {
    const bodies = new BodyReaders(LIMITS);
    for (const client of ["192.0.2.1", "192.0.2.2"]) await begin(bodies, client).arrive(2 * MIB);
    await assert.rejects(whole(bodies, "192.0.2.3", SMALL_BODY_BYTES + 1), busy);
    for (const client of ["192.0.2.3", "192.0.2.1"]) {
      assert.equal(await whole(bodies, client, SMALL_BODY_BYTES), SMALL_BODY_BYTES);
    }
  });

  it("one client holds a quarter, or one body; an IPv6 network is one client", async () => {
    const bodies = new BodyReaders(LIMITS);
    await begin(bodies, "2001:db8::1").arrive(2 * MIB);
    await assert.rejects(whole(bodies, "2001:db8::2", SMALL_BODY_BYTES + 1), busy);
    assert.equal(await whole(bodies, "2001:db8:1::2", MIB), MIB);
  });

  it("clients that cannot be told apart, behind a Unix socket, share the whole", async () => {
    const bodies = new BodyReaders(LIMITS);
    await begin(bodies, "").arrive(2 * MIB);
    assert.equal(await whole(bodies, "", MIB), MIB);
  });

  it("a place is given back once: by release, or when the body is refused", async () => {
    const bodies = new BodyReaders(LIMITS);
    const first = begin(bodies, "192.0.2.1");
    await first.arrive(2 * MIB);
    const held = await first.end();
    await assert.rejects(whole(bodies, "192.0.2.1", MIB), busy);
    held.release();
    held.release();
    const second = begin(bodies, "192.0.2.1");
    await second.arrive(2 * MIB);
    await assert.rejects(whole(bodies, "192.0.2.1", MIB), busy);
    await second.arrive(1);
    await assert.rejects(second.held, (error: unknown) => (error as GitError).code === "body_too_large");
    assert.equal(await whole(bodies, "192.0.2.1", 2 * MIB), 2 * MIB);
  });
});
