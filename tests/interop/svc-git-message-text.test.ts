import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import {
  FLUSH_PKT,
  encodeErrorLine,
  encodePktLine,
  encodeSideBandError,
  encodeSideBandProgress,
} from "@devplat/git-protocol";
import { gitEnvironment, run, tempFolder } from "@devplat/testkit";

/** A colour and a cleared screen, as ESC and as C1, and a change of the direction of text. */
const HOSTILE = "\u001b[31m \u009b2J \u202e";
const ESCAPED = "\\u{1b}[31m \\u{9b}2J \\u{202e}";
const OID = "1".repeat(40);

/** Runs stock git against a server that gives these bytes as the response to `fetch`, or to `ls-refs`. */
async function gitPrints(command: "fetch" | "ls-refs", response: Buffer): Promise<string> {
  const folder = await tempFolder("svc-message-text");
  const lines = (...texts: string[]): Buffer =>
    Buffer.concat([...texts.map((text) => encodePktLine(`${text}\n`)), FLUSH_PKT]);
  const server = createServer((request, answer) => {
    const isAdvertisement = request.method === "GET";
    answer.setHeader(
      "Content-Type",
      `application/x-git-upload-pack-${isAdvertisement ? "advertisement" : "result"}`,
    );
    if (isAdvertisement) {
      answer.end(lines("version 2", "ls-refs", "fetch", "object-format=sha1"));
      return;
    }
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const asked = Buffer.concat(parts).includes("command=fetch") ? "fetch" : "ls-refs";
      answer.end(asked === command ? response : lines(`${OID} refs/heads/main`));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const cloned = await run("git", ["clone", "--progress", `http://127.0.0.1:${port}/r`, "r"], {
    cwd: folder.path,
    env: gitEnvironment(),
    timeoutMs: 60_000,
  });
  server.close();
  await folder.remove();
  assert.notEqual(cloned.code, 0);
  return cloned.stderr;
}

it("stock git prints no control character of our progress and error text [svc 10.14]", async () => {
  const packfile = encodePktLine("packfile\n");
  const inPack = Buffer.concat([
    packfile,
    encodeSideBandProgress(`progress ${HOSTILE}\n`),
    encodeSideBandError(`error ${HOSTILE}`),
  ]);
  const printed = await gitPrints("fetch", inPack);
  assert.ok(printed.includes(`remote: progress ${ESCAPED}`), printed);
  assert.ok(printed.includes(`remote: error ${ESCAPED}`), printed);
  const refused = await gitPrints("ls-refs", encodeErrorLine(`line ${HOSTILE}`));
  assert.ok(refused.includes(`remote error: line ${ESCAPED}`), refused);
  const unsafe = ["\u001b[31", "\u009b", "\u202e"];
  for (const text of [printed, refused]) {
    assert.deepEqual(
      unsafe.filter((each) => text.includes(each)),
      [],
    );
  }
});
