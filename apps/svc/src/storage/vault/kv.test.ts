import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { useVaultClient } from "./kv.test-kit.ts";
import { VaultKv, type Stored } from "./kv.ts";

/** Another instance changes each document right after it was read here. */
class ContestedKv extends VaultKv {
  override async read<T>(path: string, version?: number): Promise<Stored<T> | undefined> {
    const stored = await super.read<T>(path, version);
    await this.write(path, "of another instance", stored?.version ?? 0);
    return stored;
  }
}

class CountingKv extends VaultKv {
  reads = 0;

  override async read<T>(path: string, version?: number): Promise<Stored<T> | undefined> {
    this.reads++;
    return super.read<T>(path, version);
  }
}

describe("VaultKv", () => {
  const client = useVaultClient();
  const place = { mount: "kv", prefix: "svc" };

  it("a record that others change each time is contention, not a database that is away", async () => {
    await assert.rejects(
      new ContestedKv(client(), place).change<string>("contested", () => "of this instance"),
      { code: "database_contention", remedy: "retry" },
    );
    assert.equal((await new VaultKv(client(), place).read("contested"))?.value, "of another instance");
  });

  it("put creates a document without a read, and changes one that is there", async () => {
    const kv = new CountingKv(client(), place);
    const put = async () => kv.put<number>("count", (present = 0) => present + 1);
    assert.equal(await put(), 1);
    assert.equal(kv.reads, 0);
    assert.equal(await put(), 2);
    assert.equal((await kv.read("count"))?.value, 2);
  });
});
