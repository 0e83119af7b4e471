import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret } from "@devplat/base";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import { ObservedStore } from "./observed-store.ts";
import { StoreHealth } from "./store-health.ts";

/** A store that does what a test says for every listing. */
function observed(
  list: SecretStore["list"],
  signIn?: ConstructorParameters<typeof ObservedStore>[0]["signIn"],
): { store: ObservedStore; health: StoreHealth } {
  const health = new StoreHealth();
  const store = { driver: "vault", list } as unknown as SecretStore;
  return { store: new ObservedStore({ store, health, ...(signIn !== undefined && { signIn }) }), health };
}

const failing = (error: SecretStoreError) => (): Promise<never> => Promise.reject(error);

describe("ObservedStore", () => {
  for (const [code, fault] of [
    ["unavailable", "words"],
    ["sealed", "words"],
    ["misconfigured", "words"],
    ["denied", null],
    ["not_found", null],
    ["refused", null],
    ["too_large", undefined],
    ["unsupported_text", undefined],
    ["bad_path", undefined],
    ["aborted", undefined],
  ] as const) {
    it(`a request that ends as ${code} leaves the fault ${String(fault)}`, async () => {
      const { store, health } = observed(failing(new SecretStoreError(code, "words")));
      await assert.rejects(store.list(""), { code });
      assert.equal(health.fault(), fault);
    });
  }

  it("a response ends a fault, and each change is reported once [agent 35.17]", async () => {
    let fault: SecretStoreError | undefined = new SecretStoreError("unavailable", "down");
    const { store, health } = observed(async () => {
      if (fault !== undefined) throw fault;
      return [];
    });
    const told: (string | null | undefined)[] = [];
    health.onChange(() => told.push(health.fault()));
    await assert.rejects(store.list(""));
    await assert.rejects(store.list(""));
    fault = undefined;
    await store.list("");
    await store.list("");
    assert.deepEqual(told, ["down", null]);
  });

  it("within() ends a request that hangs as unavailable; an earlier one says nothing", async () => {
    const { store, health } = observed(async (_folder, { signal } = {}) => {
      await new Promise((resolve) => signal?.addEventListener("abort", resolve, { once: true }));
      throw new SecretStoreError("aborted", "the caller gave up");
    });
    await assert.rejects(store.within(50).list(""), { code: "unavailable", message: /within 0.05 s/ });
    assert.equal(health.fault(), undefined);
    await assert.rejects(store.within(1100).list(""), { code: "unavailable" });
    assert.match(health.fault() ?? "", /has not answered within 1.1 s/);
    const caller = AbortSignal.timeout(10);
    await assert.rejects(store.within(5000).list("", { signal: caller }), { code: "aborted" });
  });

  it("a refused token is dropped, unless another one has taken its place since [agent 35.18]", async () => {
    const tokens = [new Secret("old"), new Secret("old"), new Secret("old"), new Secret("new")].values();
    let dropped = 0;
    const signIn = { token: () => tokens.next().value, invalidate: () => void (dropped += 1) };
    const refused = new SecretStoreError("unauthenticated", "no");
    const { store } = observed(() => sleep(1).then(failing(refused)), signIn);
    await assert.rejects(store.list(""));
    assert.equal(dropped, 1);
    await assert.rejects(store.list(""));
    assert.equal(dropped, 1, "the answer was about the old one");
  });
});
