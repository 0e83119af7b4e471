import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startCodeHost,
  startSvc,
  tempFolder,
  type CodeHost,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { signInAtHost } from "./host-sign-in.ts";

let codeHost: CodeHost;
let folder: TempFolder;
let file: string;
let svc: Svc;

before(async () => {
  codeHost = await startCodeHost();
  codeHost.oauth.settings.consent = { login: "alice" };
  await codeHost.addRepository("acme", "widgets");
  folder = await tempFolder("svc-login-lists");
  file = join(folder.path, "svc.yaml");
  await writeFile(file, "login: { allowed_users: [alice] }\n");
  svc = await startSvc({
    codeHost,
    args: ["--config", file],
    env: {
      SVC_DEV_MODE: undefined,
      SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
      SVC_HOST_CLIENT_ID: codeHost.oauth.clientId,
      SVC_HOST_CLIENT_SECRET: codeHost.oauth.clientSecret,
    },
  });
});
after(async () => {
  await svc.stop();
  await codeHost.stop();
  await folder.remove();
});

async function reload(text: string): Promise<void> {
  await writeFile(file, text);
  const seen = svc.log().length;
  process.kill(svc.pid, "SIGHUP");
  while (!/"msg":"reloaded/.test(svc.log().slice(seen))) await sleep(20);
}

it("a login removed from login.allowed_users is out until a reload adds it again [svc 8.8]", async () => {
  const signedIn = await signInAtHost(svc.url);
  const bearer = { authorization: `Bearer ${signedIn}` };
  const token = await svc.mintToken(signedIn, { repository: "acme/widgets", scopes: "contents:read" });
  const statuses = async (): Promise<number[]> => {
    const session = await fetch(`${svc.url}/api/session`, { headers: bearer });
    const git = await fetch(`${svc.url}/acme/widgets.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return [session.status, git.status];
  };
  assert.deepEqual(await statuses(), [200, 200]);
  await reload("login: { allowed_users: [bob] }\n");
  assert.deepEqual(await statuses(), [401, 403]);
  await reload("login: { allowed_organizations: [acme] }\n");
  assert.deepEqual(await statuses(), [401, 403]);
  codeHost.oauth.settings.organizations = ["acme"];
  await reload("login: { allowed_organizations: [ACME] }\n");
  assert.deepEqual(await statuses(), [200, 200]);
});
