import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { repositories, startCodeHost, startVersityGateway } from "@devplat/testkit";
import { startTestBucket, type TestBucket } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { basic, command } from "./svc-git-stand.ts";
import { startObjectStand, type ObjectStand } from "./svc-object-stand.ts";

const HEADS = command("ls-refs", ["ref-prefix HEAD", "ref-prefix refs/heads/"]);
const SERVICE = "service-token";
const ADA = { Authorization: basic("ada-token") };

/** A little more than the time for which requests do not ask for a manifest again. */
const MANIFEST_AGE_MS = 1100;

describe("warming of instances that share a bucket", { timeout: 240_000 }, () => {
  let bucket: TestBucket;
  let maintainer: ObjectStand;
  let other: ObjectStand;
  before(async () => {
    bucket = await startTestBucket(startVersityGateway);
    const codeHost = await startCodeHost({ refInWant: false });
    codeHost.addUser("svc", SERVICE);
    codeHost.addUser("ada", "ada-token");
    const options = { bucket, codeHost, serviceToken: SERVICE };
    maintainer = await startObjectStand(options);
    other = await startObjectStand({
      ...options,
      writer: "w2",
      maintainer: { mayMaintain: () => Promise.resolve(undefined) },
    });
    await codeHost.addRepository("org", "one", { private: true, build: repositories.merges });
    for (const stand of [maintainer, other]) stand.list("org", "one");
  });
  after(async () => {
    await other?.stop();
    await maintainer?.stop();
    await bucket?.stop();
  });

  const clone = async (stand: ObjectStand, folder: string): Promise<void> => {
    const header = `http.extraHeader=Authorization: ${ADA.Authorization}`;
    const args = ["-c", header, "clone", "-q", "--mirror", `${stand.url}/org/one`, folder];
    const { code, stderr } = await stand.git(args);
    assert.equal(code, 0, stderr);
    await stand.uploaded();
  };
  const look = async (stand: ObjectStand): Promise<void> => {
    await stand.post("org/one", HEADS, ADA);
    await stand.uploaded();
  };

  it("the maintainer alone fetches a push; the others get it from the bucket", async () => {
    await clone(maintainer, "first");
    await clone(other, "second");
    await maintainer.codeHost.push("org", "one", { commits: 2 });
    maintainer.codeHost.resetCalls();
    const fetches = (): number => maintainer.codeHost.calls.filter((call) => call.command === "fetch").length;
    await look(other);
    assert.equal(fetches(), 0);
    await look(maintainer);
    assert.equal(fetches(), 1);
    await sleep(MANIFEST_AGE_MS);
    await clone(other, "third");
    assert.equal(fetches(), 1);
  });
});
