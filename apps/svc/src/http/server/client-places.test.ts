import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ClientPlaces } from "./client-places.ts";

describe("ClientPlaces", () => {
  const never = new AbortController().signal;

  it("a client with three quarters of the places waits for its own; others do not", async () => {
    const places = new ClientPlaces(4);
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(async () => places.take("192.0.2.1", never)),
    );
    const order: string[] = [];
    const waiting = ["a", "b"].map(async (name) => {
      const place = await places.take("192.0.2.1", never);
      order.push(name);
      return place;
    });
    const other = await places.take("192.0.2.2", never);
    other();
    assert.deepEqual(order, []);
    first?.();
    await waiting[0];
    assert.deepEqual(order, ["a"]);
    second?.();
    await waiting[1];
    third?.();
    for (const place of await Promise.all(waiting)) place();
    // All of them are free again.
    await Promise.all([1, 2, 3].map(async () => places.take("192.0.2.1", never)));
  });

  it("an IPv6 network of 64 bits is one client", async () => {
    const places = new ClientPlaces(1);
    const place = await places.take("2001:db8::1", never);
    const order: string[] = [];
    const waiting = places.take("2001:db8::2", never).then(() => order.push("same network"));
    await places.take("2001:db8:0:1::1", never);
    order.push("another");
    place();
    await waiting;
    assert.deepEqual(order, ["another", "same network"]);
  });

  it("who gives up waiting gets no place, and leaving twice gives back one", async () => {
    const places = new ClientPlaces(1);
    const place = await places.take("192.0.2.1", never);
    const leaving = new AbortController();
    const given = places.take("192.0.2.1", leaving.signal);
    const waiting = places.take("192.0.2.1", never);
    leaving.abort(new Error("gone"));
    await assert.rejects(given, /gone/);
    await assert.rejects(places.take("192.0.2.1", leaving.signal), /gone/);
    place();
    place();
    (await waiting)();
    await places.take("192.0.2.1", never);
  });

  it("clients that cannot be told apart do not wait for one another", async () => {
    const places = new ClientPlaces(1);
    const taken = await Promise.all([1, 2, 3].map(async () => places.take("", never)));
    assert.equal(taken.length, 3);
  });
});
