import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startVersityGateway, until } from "@devplat/testkit";
import { FetchReaders, slowest, type Reading } from "./svc-fetch-readers.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

const READERS = 20;
/** Milliseconds until the code host sends the first byte. The database fails in this time. */
const HOST_MS = 3000;
/** `cache.share_wait_seconds`, in milliseconds. */
const SHARE_WAIT_MS = 10_000;
/** Milliseconds by which a loaded machine delays a reader. */
const SLACK_MS = 4000;
/** Milliseconds for which readers wait for the first response of a database that does not respond, to know of purges. */
const CHANGES_MS = 1000;
/** Milliseconds after which others count the instance of a fetch as dead. */
const SILENT_MS = 5000;

describe("shared fetches of two instances whose Postgres really fails", { timeout: 480_000 }, () => {
  let stand: InstancesStand;
  let instances: Instance[];
  let readers: FetchReaders;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    instances = await Promise.all(
      ["a", "b"].map(async (name) => stand.addInstance(name, { env: { SVC_LIMITS_CLIENT_REQUESTS: "0" } })),
    );
    for (const instance of instances) await stand.ready(instance);
    readers = new FetchReaders(stand, instances);
  });
  after(async () => {
    await stand?.stop();
  });

  const assertRight = (readings: readonly Reading[], limitMs: number): void => {
    const wrong = readings.filter(({ status, isWhole }) => status !== 200 || !isWhole);
    assert.deepEqual(wrong, [], instances.map(({ svc }) => svc.log().slice(-2000)).join("\n"));
    assert.ok(slowest(readings) < limitMs, `${slowest(readings)} ms, limit ${limitMs} ms`);
  };
  /** A fetch that both instances want costs the code host one request, and nobody waits for somebody who is gone. */
  const assertShares = async (): Promise<void> => {
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: HOST_MS });
    const { readings } = await readers.whileOneLeads(name, body, READERS);
    assertRight(await Promise.all(readings), HOST_MS + SHARE_WAIT_MS + SLACK_MS);
    assert.equal(stand.fetches(), 1, await readers.turns());
    stand.host.clearFaults();
  };

  const FAILURES: readonly [title: string, fail: () => Promise<void>, restore: () => Promise<void>][] = [
    ["is paused", async () => stand.postgres.pause(), async () => stand.postgres.resume()],
    ["is shut down", async () => stand.postgres.goAway(), async () => stand.postgres.restart()],
    ["crashes", async () => stand.postgres.goAway("SIGQUIT"), async () => stand.postgres.restart()],
  ];
  for (const [title, fail, restore] of FAILURES) {
    it(`it ${title} while others wait: all are served, and sharing works again`, async () => {
      const { name, body } = await readers.repository();
      const cold = await readers.repository();
      stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: HOST_MS });
      const { readings } = await readers.whileOneLeads(name, body, READERS);
      await fail();
      // Those who wait are served by the fetch of their own instance then.
      assertRight(await Promise.all(readings), HOST_MS + SHARE_WAIT_MS + SLACK_MS);
      assert.ok(stand.fetches() <= instances.length, `${stand.fetches()} fetches`);
      // Readers that come while it is away, of what is here and of what nobody has.
      assertRight(await Promise.all(readers.readAll(name, body, READERS)), CHANGES_MS + SLACK_MS);
      stand.host.resetCalls();
      assertRight(await Promise.all(readers.readAll(cold.name, cold.body, READERS)), SILENT_MS + SLACK_MS);
      assert.ok(stand.fetches() <= instances.length, `${stand.fetches()} fetches`);
      stand.host.clearFaults();
      await restore();
      for (const instance of instances) await stand.ready(instance);
      await assertShares();
      await assertShares();
      // The data that was fetched in between reaches the bucket.
      for (const each of [name, cold.name]) {
        await stand.uploaded(instances[0]!, each);
        for (const instance of instances) await readers.fsck(instance, each);
      }
    });
  }

  it("it is back while readers wait: they go on, and later ones share", async () => {
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: HOST_MS });
    const { readings } = await readers.whileOneLeads(name, body, READERS);
    await stand.postgres.pause();
    await new Promise((resolve) => setTimeout(resolve, CHANGES_MS));
    await stand.postgres.resume();
    assertRight(await Promise.all(readings), HOST_MS + SHARE_WAIT_MS + SLACK_MS);
    stand.host.clearFaults();
    await assertShares();
  });

  it("a fetch that the database began too late for its caller makes nobody wait", async () => {
    const { name, body } = await readers.repository();
    await stand.postgres.pause();
    // The caller fetches by itself. Its request to the database is carried out after the pause.
    const [first] = readers.readAll(name, body, 1);
    assertRight([await first!], SILENT_MS + CHANGES_MS + SLACK_MS);
    await stand.postgres.resume();
    for (const instance of instances) await stand.ready(instance);
    const state = async (): Promise<string> =>
      stand.sql(`SELECT state FROM shared_fetches WHERE key LIKE '%/acme/${name} % response %'`);
    await until(async () => (await state()) !== "fetching");
    stand.host.resetCalls();
    const second = await readers.read(instances[1]!, name, body);
    assertRight([second], SLACK_MS);
  });
});
