import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HttpClientError } from "./errors.ts";
import { proxyText } from "./proxy-address.ts";
import { proxyFor } from "./proxy.ts";

const P = "http://proxy:3128";

describe("the proxy of a URL", () => {
  const variables: [environment: Record<string, string>, url: string, proxy: string | undefined][] = [
    [{}, "https://git.example", undefined],
    [{ HTTPS_PROXY: P }, "https://git.example", `${P} (HTTPS_PROXY)`],
    [{ https_proxy: "proxy:3128" }, "https://git.example", `${P} (https_proxy)`],
    [{ https_proxy: P, HTTPS_PROXY: "http://other" }, "https://git.example", `${P} (https_proxy)`],
    [{ https_proxy: "", HTTPS_PROXY: P }, "https://git.example", `${P} (HTTPS_PROXY)`],
    [{ HTTPS_PROXY: P }, "http://git.example", undefined],
    [{ HTTP_PROXY: P }, "http://git.example", `${P} (HTTP_PROXY)`],
    [{ http_proxy: P }, "http://git.example", `${P} (http_proxy)`],
    [{ HTTP_PROXY: P }, "https://git.example", undefined],
    [{ ALL_PROXY: P }, "https://git.example", `${P} (ALL_PROXY)`],
    [{ all_proxy: P, HTTPS_PROXY: "http://own" }, "https://git.example", "http://own (HTTPS_PROXY)"],
    [{ HTTPS_PROXY: "https://proxy" }, "https://git.example", "https://proxy (HTTPS_PROXY)"],
    [
      { HTTPS_PROXY: "http://[2001:db8::1]:3128/" },
      "https://git.example",
      "http://[2001:db8::1]:3128 (HTTPS_PROXY)",
    ],
    [{ HTTPS_PROXY: "http://ada:planted@proxy:3128" }, "https://git.example", `${P} (HTTPS_PROXY)`],
    [{ HTTPS_PROXY: "" }, "https://git.example", undefined],
    [{ HTTPS_PROXY: P, no_proxy: "git.example", NO_PROXY: "" }, "https://git.example", undefined],
    [{ ALL_PROXY: P }, "http://localhost:1", undefined],
    [{ ALL_PROXY: P }, "http://127.1.2.3:1", undefined],
    [{ ALL_PROXY: P }, "http://[::1]:1", undefined],
    [{ ALL_PROXY: P }, "http://localhost.example", `${P} (ALL_PROXY)`],
  ];
  for (const [environment, url, expected] of variables) {
    it(`of ${url} by ${JSON.stringify(environment)} is ${expected ?? "none"}`, () => {
      const proxy = proxyFor(url, environment);
      assert.equal(proxy === undefined ? undefined : proxyText(proxy).replace("the proxy ", ""), expected);
    });
  }

  const V6 = "https://[2001:db8::5]:8443";
  const exceptions: [noProxy: string, url: string, direct: boolean][] = [
    ["*", "https://git.example", true],
    ["a.b,*", "https://git.example", true],
    ["git.example", "https://git.example", true],
    ["GIT.example", "https://git.EXAMPLE", true],
    ["a.b, git.example", "https://git.example", true],
    ["a.b git.example", "https://git.example", true],
    ["example", "https://git.example", true],
    [".example", "https://git.example", true],
    ["*.example", "https://git.example", true],
    ["git.example", "https://a.git.example", true],
    [".git.example", "https://a.git.example", true],
    ["it.example", "https://git.example", false],
    ["git.example.com", "https://git.example", false],
    ["git.example:443", "https://git.example", true],
    ["git.example:80", "http://git.example", true],
    ["git.example:8443", "https://git.example", false],
    ["git.example:8443", "https://git.example:8443", true],
    [".example:8443", "https://git.example:8443", true],
    ["192.0.2.7", "https://192.0.2.7", true],
    ["192.0.2.7", "https://192.0.2.77", false],
    ["192.0.2.7:8443", "https://192.0.2.7:8443", true],
    ["2001:db8::5", V6, true],
    ["a.b,2001:db8::5", V6, true],
    ["2001:DB8:0:0:0:0:0:5", V6, true],
    ["[2001:db8::5]", V6, true],
    ["[2001:db8::5]:8443", V6, true],
    ["[2001:db8:0::5]:8443", V6, true],
    ["[2001:db8::5]:443", V6, false],
    ["2001:db8::55", V6, false],
    ["db8::5", V6, false],
    ["::5", V6, false],
    ["::ffff:192.0.2.7", "https://[::ffff:c000:207]", true],
    ["fe80::1%eth0", V6, false],
    // The library does not support ranges of addresses.
    ["2001:db8::/32", V6, false],
    ["192.0.2.0/24", "https://192.0.2.7", false],
    ["", V6, false],
    [" , ,", V6, false],
  ];
  for (const [noProxy, url, direct] of exceptions) {
    const result = direct ? "exempts" : "does not exempt";
    it(`NO_PROXY=${JSON.stringify(noProxy)} ${result} ${url} [agent 4.5]`, () => {
      for (const NO_PROXY of ["NO_PROXY", "no_proxy"]) {
        assert.equal(proxyFor(url, { ALL_PROXY: P, [NO_PROXY]: noProxy }) === undefined, direct);
      }
    });
  }

  it("is refused if it is not an address, and the message does not quote it", () => {
    for (const text of [
      "http://u:planted@proxy:xx",
      "socks5://u:planted@proxy:1",
      "http://bad planted/",
      "http://pl%anted:x@proxy",
      "http://",
    ]) {
      assert.throws(
        () => proxyFor("https://git.example", { HTTPS_PROXY: text }),
        (error: HttpClientError) => {
          assert.equal(error.code, "proxy_misconfigured");
          assert.equal(error.message, "HTTPS_PROXY is not the address of an HTTP proxy");
          assert.doesNotMatch(`${error.stack ?? ""} ${error.hint ?? ""}`, /planted/);
          return true;
        },
      );
    }
  });
});
