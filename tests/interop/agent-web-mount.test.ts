import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import { launchChromium, until, type Browser, type Page } from "@devplat/testkit";
import { AgentError } from "../../apps/agent/src/errors.ts";
import type { DockerStatus, FuseStatus } from "../../apps/agent/src/status.ts";
import { startTestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { DESK, PHONE, assertFits, openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";

const TIMEOUT_MS = 120_000;

const MOUNTED: FuseStatus = {
  mountpoint: "/home/ada/.daemon",
  access: "read-only",
  layout: "both",
  cache_ttl_seconds: 30,
  mounted: true,
  state: "mounted",
  problem: null,
  omitted_names: 0,
  unsaved: [],
};
const UNSAVED: FuseStatus = {
  ...MOUNTED,
  access: "read-write",
  layout: "json",
  omitted_names: 3,
  unsaved: [
    { path: `${"deep/".repeat(30)}.key.json.rejected`, reason: "the store denies it <b>here</b>" },
    { path: "demo/.registry.json.conflict", reason: "the secret has changed" },
  ],
};
const REFUSED: FuseStatus = {
  ...MOUNTED,
  mounted: false,
  state: "refused",
  problem: `cannot mount at /home/ada/${"x".repeat(100)}: it is not empty. Move its content, or choose another fuse.mountpoint.`,
};
const UNMOUNTED: FuseStatus = { ...MOUNTED, mounted: false, state: "unmounted" };

const DOCKER: DockerStatus = {
  enabled: true,
  socket: "/run/user/1000/daemon/docker.sock",
  volume_dir: "/run/user/1000/daemon/volumes",
  next_volume_dir: null,
  error: null,
  registrations: [
    {
      engine: "docker",
      path: "/etc/docker/plugins/daemon.spec",
      expected: "unix:///run/user/1000/daemon/docker.sock",
      state: "names a different socket",
    },
  ],
  volumes: [
    {
      name: "app",
      mounts: 2,
      secrets: 1,
      paths: ["demo/registry"],
      layout: "json",
      refresh: "events",
      error: null,
    },
    {
      name: "y".repeat(100),
      mounts: 0,
      secrets: 0,
      paths: ["deep/".repeat(30), "<img src=x>"],
      layout: "fields",
      refresh: "probing",
      error: "the volume folder is full",
    },
  ],
};

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

const text = async (page: Page, heading: string): Promise<string> =>
  (
    await page.locator("section", { has: page.getByRole("heading", { name: heading }) }).innerText()
  ).replaceAll(/\s+/g, " ");

describe("the overview of the filesystem mount in Chromium", { timeout: TIMEOUT_MS }, () => {
  const shown: [string, FuseStatus, RegExp[]][] = [
    ["mounted", MOUNTED, [/State mounted Access read-only/, /a file for each field/, /Unmount$/]],
    [
      "with files that are not stored",
      UNSAVED,
      [/read-write/, /Left out 3 names/, /denies it <b>here<\/b>/, /in memory, and gone after an unmount/],
    ],
    ["refused", REFUSED, [/State not mounted/, /it is not empty/, /Run agent doctor/, /Mount$/]],
    ["unmounted", UNMOUNTED, [/State unmounted by request/, /Mount$/]],
  ];
  for (const [name, fuse, words] of shown)
    it(`${name}: is complete, fits phone and desk, and has no accessibility fault [agent 38.21]`, async () => {
      await using server = await startTestServer();
      server.view.set({ status: { fuse } });
      const { page, context, complaints } = await openWatchedPage(browser, server.url);
      await page.goto(`${server.url}/ui/`);
      const card = await text(page, "Filesystem mount");
      for (const each of [/\/home\/ada\/\.daemon/, ...words]) assert.match(card, each);
      await assertFits(page, `mount-${name}`);
      assert.deepEqual(ownComplaints(complaints), []);
      await context.close();
    });

  it("is absent while it is off", async () => {
    await using server = await startTestServer();
    const { body } = await server.send("/ui/");
    assert.doesNotMatch(body, /Filesystem mount/);
    assert.equal(
      (await server.send("/ui/mount", { method: "POST", headers: { Origin: server.url } })).status,
      404,
    );
  });

  it("unmounts and mounts by keyboard, without scripts, and follows the daemon", async () => {
    const calls: string[] = [];
    await using server = await startTestServer({
      mount: {
        mount: async () => {
          calls.push("mount");
          server.view.set({ status: { fuse: MOUNTED } });
        },
        unmount: async (lazy) => {
          calls.push(lazy ? "lazy" : "unmount");
          if (!lazy)
            throw new AgentError("mount_failed", "cannot unmount /home/ada/.daemon: EBUSY", {
              hint: "Close the programs that use it.",
            });
          server.view.set({ status: { fuse: UNMOUNTED } });
        },
      },
    });
    for (const [viewport, javaScriptEnabled] of [
      [PHONE, true],
      [DESK, false],
    ] as const) {
      calls.length = 0;
      server.view.set({ status: { fuse: MOUNTED } });
      const { page, context, complaints } = await openWatchedPage(browser, server.url, { javaScriptEnabled });
      await page.setViewportSize(viewport);
      await page.goto(`${server.url}/ui/`);
      const unmount = page.getByRole("button", { name: "Unmount" });
      await tabTo(page, unmount);
      await page.keyboard.press("Enter");
      await page.getByText("Cannot unmount /home/ada/.daemon: EBUSY.").waitFor();
      await page.getByText("Close the programs that use it.").waitFor();
      await page.goto(`${server.url}/ui/`);
      await tabTo(page, page.getByRole("checkbox", { name: /Also while files are open/ }));
      await page.keyboard.press("Space");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByText("unmounted by request").waitFor();
      await tabTo(page, page.getByRole("button", { name: "Mount", exact: true }));
      await page.keyboard.press("Enter");
      await unmount.waitFor();
      assert.deepEqual(calls, ["unmount", "lazy", "mount"]);
      if (javaScriptEnabled) {
        server.view.set({ status: { fuse: REFUSED } });
        await page.getByText("it is not empty").waitFor();
      }
      assert.deepEqual(ownComplaints(complaints), []);
      await context.close();
    }
  });
});

describe("container volumes on the overview in Chromium", { timeout: TIMEOUT_MS }, () => {
  it("show secrets, mounts, refresh, errors and registrations, on phone and desk [agent 37.18]", async () => {
    await using server = await startTestServer();
    server.view.set({ status: { docker: DOCKER } });
    const { page, context, complaints } = await openWatchedPage(browser, server.url);
    await page.goto(`${server.url}/ui/`);
    const card = await text(page, "Container volumes");
    for (const words of [
      /daemon\.spec names a different socket\. Run agent docker register/,
      /app 1 of demo\/registry 2 after each change none/,
      /finding out the volume folder is full/,
      /<img src=x>/,
    ])
      assert.match(card, words);
    await assertFits(page, "volumes");
    // Nothing is cut off at the edge of the card.
    const wider = await page.evaluate(
      `Array.from(document.querySelectorAll("section, table"), (each) => each.scrollWidth - each.clientWidth)`,
    );
    assert.ok(
      (wider as number[]).every((each) => each <= 0),
      String(wider),
    );
    server.view.set({ status: { docker: { ...DOCKER, enabled: false, volumes: [], error: "no socket" } } });
    await page.getByText("is false, but an engine is told to use its socket").waitFor();
    await assertFits(page, "volumes-off");
    server.view.set({ status: { docker: { ...DOCKER, next_volume_dir: "/run/user/1000/other/volumes" } } });
    await page.getByText("To use /run/user/1000/other/volumes, remove them").waitFor();
    await assertFits(page, "volumes-next");
    assert.deepEqual(ownComplaints(complaints), []);
    await context.close();
  });
});

describe("a secret's page with the filesystem mount in Chromium", { timeout: TIMEOUT_MS }, () => {
  it("shows its paths, and copies them with and without scripts [agent 38.22]", async () => {
    await using server = await startTestServer();
    await server.store.write("demo/registry", parseFields('{"user":"ada","a/b":"c"}'));
    server.view.set({ status: { fuse: MOUNTED } });
    for (const javaScriptEnabled of [true, false]) {
      server.copied.length = 0;
      const { page, context, complaints } = await openWatchedPage(browser, server.url, { javaScriptEnabled });
      await page.goto(`${server.url}/ui/secrets/demo/registry`);
      await page.getByText("/home/ada/.daemon/demo/registry.json").waitFor();
      await tabTo(page, page.getByRole("button", { name: "Copy the path of the file" }));
      await page.keyboard.press("Enter");
      await page.getByText("Copied to the clipboard of this host.").waitFor();
      await tabTo(page, page.getByText("Files of the fields"));
      await page.keyboard.press("Enter");
      assert.equal(await page.getByText("/registry.d/").count(), 1, "no file can have a slash in its name");
      if (javaScriptEnabled) await assertFits(page, "secret");
      await tabTo(page, page.getByRole("button", { name: "Copy the path of user" }));
      await page.keyboard.press("Enter");
      await until(() => server.copied.length === 2);
      assert.deepEqual(server.copied, [
        "/home/ada/.daemon/demo/registry.json",
        "/home/ada/.daemon/demo/registry.d/user",
      ]);
      assert.deepEqual(ownComplaints(complaints), []);
      await context.close();
    }
    server.view.set({ status: { fuse: { ...UNMOUNTED, layout: "json" } } });
    const { body } = await server.send("/ui/secrets/demo/registry");
    assert.match(body, /Nothing is mounted now/);
    assert.doesNotMatch(body, /registry\.d/);
    for (const field of ['"user"', "x", '"a/b"'])
      assert.equal((await copyPath(server, { field })).status, 404, field);
    assert.equal((await server.send("/ui/secrets/demo/registry?version=1")).body.includes(".daemon/"), false);
  });

  it("the configuration's page has both sections with their defaults", async () => {
    await using server = await startTestServer({
      configuration: "store: { driver: embedded }\nfuse: { enabled: true }\ndocker: { enabled: true }",
    });
    const { body } = await server.send("/ui/config/");
    assert.match(
      body,
      /fuse:\n {2}enabled: true\n {2}mountpoint: ~\/\.daemon\n {2}read_write: false\n {2}layout: json/,
    );
    assert.match(body, /docker:\n {2}enabled: true/);
  });
});

async function copyPath(
  server: Awaited<ReturnType<typeof startTestServer>>,
  form: Record<string, string>,
): Promise<{ readonly status: number }> {
  return await server.send("/ui/secrets/demo/registry", {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded", Origin: server.url },
    body: new URLSearchParams({ action: "copy-path", ...form }).toString(),
  });
}

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, element: ReturnType<Page["locator"]>): Promise<void> {
  for (let count = 0; count < 80; count++) {
    if (await element.evaluate((node) => node === node.ownerDocument.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${await element.textContent()}`);
}
