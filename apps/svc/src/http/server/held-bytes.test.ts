import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { HeldBytes, SMALL_BODY_BYTES } from "./held-bytes.ts";

describe("HeldBytes", () => {
  it("after any bodies that grew and left, all of it is free again", () => {
    const bodies = fc.array(
      fc.tuple(fc.constantFrom("192.0.2.1", "192.0.2.2", ""), fc.array(fc.nat(2 * SMALL_BODY_BYTES))),
    );
    fc.assert(
      fc.property(bodies, (all) => {
        const held = new HeldBytes(8 * SMALL_BODY_BYTES);
        const places = all.map(([client, steps]) => {
          const place = held.place(client);
          for (const step of steps) place.grow(step);
          return place;
        });
        for (const place of [...places, ...places]) place.leave();
        const whole = held.place("192.0.2.1");
        assert.equal(whole.grow(8 * SMALL_BODY_BYTES), true);
        assert.equal(held.place("192.0.2.2").grow(SMALL_BODY_BYTES + 1), false);
      }),
    );
  });
});
