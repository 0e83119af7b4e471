import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { edit } from "../../test/editing.test-kit.ts";

const home = mkdtempSync(join(tmpdir(), "netrc-"));
after(() => rmSync(home, { recursive: true }));

/** Credentials that git sends to a host of this netrc file, through libcurl. */
async function sent(netrc: string): Promise<string> {
  let credentials = "";
  const server = createServer((request: IncomingMessage, response) => {
    const header = request.headers.authorization;
    if (header !== undefined) credentials = Buffer.from(header.replace("Basic ", ""), "base64").toString();
    response.writeHead(header === undefined ? 401 : 404, { "WWW-Authenticate": 'Basic realm="x"' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  writeFileSync(join(home, ".netrc"), netrc, { mode: 0o600 });
  const environment = {
    PATH: process.env["PATH"],
    HOME: home,
    GIT_TERMINAL_PROMPT: "0",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  await promisify(execFile)("git", ["ls-remote", `http://127.0.0.1:${port}/a/b`], { env: environment }).catch(
    () => {},
  );
  await new Promise((resolve) => server.close(resolve));
  return credentials;
}

test("netrc edit: libcurl sends any login and password that were set", async () => {
  const passwords = [
    "plain",
    "two words",
    "#hash",
    '"quoted"',
    "back\\slash",
    "tab\there",
    "a#b",
    "it's",
    'mid"quote',
    "é",
  ];
  for (const password of passwords) {
    const before =
      "# mine\nmachine other.example login x password y\nmacdef init\n\tcd /pub\n\ndefault login z password w";
    const content = new Map([["127.0.0.1", new Map([["me", new Map([["password", password]])]])]]);
    assert.equal(await sent(edit("netrc", before, content)), `me:${password}`);
  }
});
