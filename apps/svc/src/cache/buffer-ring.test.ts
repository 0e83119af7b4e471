import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BufferRing } from "./buffer-ring.ts";

/** The buffers of a sender that ends while its last one is in the given state. */
async function endedSender(last: Promise<void>): Promise<Buffer> {
  const ring = new BufferRing();
  const buffer = await ring.take();
  ring.sending(last);
  await Promise.race([ring.drained().catch(() => undefined), new Promise((wait) => setTimeout(wait, 5))]);
  ring.release();
  return buffer;
}

async function nextSender(): Promise<Buffer> {
  const ring = new BufferRing();
  const buffer = await ring.take();
  ring.release();
  return buffer;
}

describe("BufferRing", () => {
  it("hands a buffer to the next sender once it has been sent", async () => {
    const buffer = await endedSender(Promise.resolve());
    assert.equal(await nextSender(), buffer);
  });

  it("hands no buffer on that is still on its way", async () => {
    const buffer = await endedSender(new Promise(() => undefined));
    assert.notEqual(await nextSender(), buffer);
  });

  it("hands no buffer on whose sending failed", async () => {
    const buffer = await endedSender(Promise.reject(new Error("the client left")));
    assert.notEqual(await nextSender(), buffer);
  });

  it("uses smaller buffers when many send at once", async () => {
    const rings = Array.from({ length: 40 }, () => new BufferRing());
    const last = await rings.at(-1)?.take();
    for (const ring of rings) ring.release();
    assert.equal(last?.length, 128 * 1024);
  });
});
