import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bindLocalhost } from "./localhost.ts";

function fault(code: string): Error {
  return Object.assign(new Error(code), { code });
}

describe("bindLocalhost", () => {
  it("binds both addresses to the port that the first one got", async () => {
    const asked: [string, number][] = [];
    const bind = async (address: string, port: number): Promise<number> => {
      asked.push([address, port]);
      return port === 0 ? 4711 : port;
    };
    const bound = await bindLocalhost(0, bind, async () => assert.fail("nothing to take back"));
    assert.deepEqual(bound, { port: 4711, addresses: ["127.0.0.1", "::1"] });
    assert.deepEqual(asked, [
      ["127.0.0.1", 0],
      ["::1", 4711],
    ]);
  });

  for (const [absent, left] of [
    ["::1", "127.0.0.1"],
    ["127.0.0.1", "::1"],
  ]) {
    for (const code of ["EADDRNOTAVAIL", "EAFNOSUPPORT"]) {
      it(`binds ${left} alone where ${absent} is missing with ${code}`, async () => {
        const bind = async (address: string, port: number): Promise<number> => {
          if (address === absent) throw fault(code);
          return port;
        };
        const bound = await bindLocalhost(80, bind, async () => undefined);
        assert.deepEqual(bound, { port: 80, addresses: [left] });
      });
    }
  }

  it("fails if the host has neither address", async () => {
    const bind = async (): Promise<number> => Promise.reject(fault("EADDRNOTAVAIL"));
    await assert.rejects(
      bindLocalhost(80, bind, async () => undefined),
      { code: "EADDRNOTAVAIL" },
    );
  });

  it("unbinds the first address and fails if the port is in use on the second", async () => {
    let taken = 0;
    const bind = async (address: string, port: number): Promise<number> => {
      if (address === "::1") throw new Error("refused", { cause: fault("EADDRINUSE") });
      return port;
    };
    const unbind = async (): Promise<void> => void (taken += 1);
    await assert.rejects(bindLocalhost(80, bind, unbind), /refused/);
    assert.equal(taken, 1);
  });

  it("tries another port if the caller wants any port", async () => {
    let next = 4000;
    const bind = async (_address: string, port: number): Promise<number> => {
      if (port === 0) return ++next;
      if (port < 4003) throw fault("EADDRINUSE");
      return port;
    };
    assert.equal((await bindLocalhost(0, bind, async () => undefined)).port, 4003);
    next = -100_000;
    await assert.rejects(
      bindLocalhost(0, bind, async () => undefined),
      { code: "EADDRINUSE" },
    );
  });
});
