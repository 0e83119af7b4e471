import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { UpstreamConnections } from "./upstream-connections.ts";

describe("connections to the code host", () => {
  const rows: [environment: Record<string, string>, origin: string, proxy: string | undefined][] = [
    [{}, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://proxy:3128" }, "https://git.example", "http://proxy:3128"],
    [{ https_proxy: "proxy:3128" }, "https://git.example", "http://proxy:3128"],
    [{ HTTPS_PROXY: "http://proxy:3128" }, "http://git.example", undefined],
    [{ HTTP_PROXY: "http://proxy:3128" }, "http://git.example", "http://proxy:3128"],
    [{ ALL_PROXY: "http://proxy:3128" }, "https://git.example", "http://proxy:3128"],
    [{ HTTPS_PROXY: "" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: "*" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: "git.example" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: ".example" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: "a.b, GIT.example:443" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: "git.example:8443" }, "https://git.example", "http://p"],
    [{ HTTPS_PROXY: "http://p", NO_PROXY: "it.example" }, "https://git.example", "http://p"],
  ];
  for (const [environment, origin, proxy] of rows) {
    it(`${JSON.stringify(environment)} reaches ${origin} ${proxy === undefined ? "directly" : `by ${proxy}`}`, () => {
      assert.equal(new UpstreamConnections({ environment }).proxyFor(origin), proxy);
    });
  }

  it("a variable that is no address of an HTTP proxy refuses the start, names itself and quotes nothing", () => {
    for (const HTTPS_PROXY of [
      "http://u:planted@proxy:xx",
      "socks5://u:planted@proxy:1",
      "http://bad host/",
    ]) {
      assert.throws(
        () => new UpstreamConnections({ environment: { HTTPS_PROXY } }).pool("https://git.example", 1),
        {
          code: "config_refused",
          message: "HTTPS_PROXY is not the address of an HTTP proxy",
        },
      );
    }
  });

  it("host.ca_file that is missing, or no PEM, refuses the start and names the file", async () => {
    const folder = await tempFolder("ca");
    const file = join(folder.path, "ca.pem");
    assert.throws(() => new UpstreamConnections({ caFile: file }), {
      code: "config_refused",
      message: /ca\.pem cannot be read/,
    });
    await writeFile(file, "nothing");
    assert.throws(() => new UpstreamConnections({ caFile: file }), { message: /holds no PEM certificate/ });
    await folder.remove();
  });
});
