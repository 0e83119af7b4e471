import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { freePort, run, startCodeHost, startSvc, SVC_LAUNCHER, tempFolder, type Svc } from "@devplat/testkit";

describe("SVC_HOST_APP_ID and SVC_HOST_PRIVATE_KEY: seed an app registration", () => {
  const apps = async (svc: Svc): Promise<Record<string, unknown>[]> => {
    const token = await svc.signIn();
    const answer = await fetch(`${svc.url}/api/apps`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.json()) as Record<string, unknown>[];
  };

  it("registers it at the start, once, and takes a new key [svc 7.9]", { timeout: 240_000 }, async () => {
    const [host, folder] = [await startCodeHost(), await tempFolder("svc-seed")];
    const app = host.apps.addApp("seeded");
    const start = async (): Promise<Svc> =>
      startSvc({
        codeHost: host,
        dataDir: folder.path,
        env: {
          SVC_HOST_APP_ID: String(app.id),
          SVC_HOST_PRIVATE_KEY: app.privateKey.replaceAll("\n", "\\n"),
        },
      });
    for (let round = 0; round < 2; round++) {
      const svc = await start();
      const listed = await apps(svc);
      assert.deepEqual(
        listed.map((each) => [each["app_id"], each["source"], each["is_default"]]),
        [[String(app.id), "configuration", true]],
      );
      assert.doesNotMatch(svc.log(), /BEGIN|MII/);
      await svc.stop();
    }
    // The code host was not asked: the start must not hang on it.
    assert.deepEqual(host.calls, []);
    await host.stop();
    await folder.remove();
  });

  it("a key that is none refuses the start with one line, and is not shown", async () => {
    const folder = await tempFolder("svc-seed");
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
    const { code, stderr } = await run(SVC_LAUNCHER, ["serve", "--migrate"], {
      cwd: folder.path,
      env: {
        ...Object.fromEntries(inherited),
        SVC_DEV_MODE: "true",
        SVC_SERVER_LISTEN: `127.0.0.1:${await freePort()}`,
        SVC_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
        SVC_HOST_APP_ID: "5",
        SVC_HOST_PRIVATE_KEY: "planted",
      },
    });
    assert.equal(code, 2);
    assert.match(stderr, /^svc: host\.private_key is not a private key in PEM form without a passphrase$/m);
    assert.doesNotMatch(stderr, /planted/);
    await folder.remove();
  });
});
