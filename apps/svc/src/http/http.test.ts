import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { rewriteLocation } from "../git/location.ts";
import { MAX_UNLISTED_SERIES, RepositoryLabelling } from "../telemetry/repository-labels.ts";
import { VirtualHosts, type VirtualHost } from "./routing/virtual-host.ts";
import { classifyTarget, isManagementPath } from "./routing/target.ts";

const kindOf = (target: string, virtualHost: VirtualHost = "management"): string => {
  const found = classifyTarget(target, virtualHost);
  return found.kind === "repository" ? found.tail.kind : found.kind;
};

describe("classifyTarget", () => {
  it("tells the tails of a repository, with and without .git", () => {
    const table: readonly [string, string][] = [
      ["/o/r/info/refs?service=git-upload-pack", "info_refs"],
      ["/o/r.git/info/refs?x=1&service=git%2Dreceive-pack", "info_refs"],
      ["/o/r.git/info/refs", "dumb_info_refs"],
      ["/o/r/git-upload-pack", "upload_pack"],
      ["/o/r/git-receive-pack", "receive_pack"],
      ["/o/r/HEAD", "dumb_object"],
      ["/o/r/objects/info/packs", "dumb_object"],
      [`/o/r/objects/ab/${"c".repeat(38)}`, "dumb_object"],
      [`/o/r/objects/pack/pack-${"c".repeat(40)}.idx`, "dumb_object"],
      ["/o/r/info/lfs/objects/batch", "lfs"],
      ["/o/r/archive/refs/heads/main.tar.gz", "archive"],
      ["/admin/r/archive/x", "other"],
      ["/admin/r/info/refs?service=git-upload-pack", "info_refs"],
      ["/o/r", "other"],
      ["/o/r/objects/secret", "other"],
      ["/", "other"],
    ];
    for (const [target, kind] of table) assert.equal(kindOf(target), kind, target);
    assert.equal(kindOf("/o/r/raw/main/x"), "other");
    assert.equal(kindOf("/o/r/raw/main/x", "code_host"), "raw");
  });

  it("rebuilds what the code host is asked for from what was understood", () => {
    const found = classifyTarget("/O/R%2Egit/info/refs?a=b&service=git-upload-pack", "management", "/base");
    assert.deepEqual(found, {
      kind: "repository",
      owner: "O",
      name: "R",
      tail: { kind: "info_refs", service: "git-upload-pack" },
      upstreamPath: "/base/O/R.git/info/refs?service=git-upload-pack",
    });
    const named = classifyTarget("/base/o/r/git-upload-pack", "code_host", "/base");
    assert.equal(named.kind === "repository" && named.upstreamPath, "/base/o/r/git-upload-pack");
  });

  it("never gives a path with a dot segment, a doubled slash or an encoded slash", () => {
    const piece = fc.constantFrom(
      "o",
      "r.git",
      "..",
      ".",
      "%2e%2e",
      "%2f",
      "%5c",
      "",
      "%00",
      "info",
      "refs",
      "%252e",
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 6 }),
        fc.constantFrom("info/refs", "git-upload-pack"),
        (pieces, tail) => {
          const found = classifyTarget(`/${pieces.join("/")}/${tail}`, "management");
          if (found.kind !== "repository") return;
          assert.doesNotMatch(found.upstreamPath, /\/\.\.?(?:\/|$)|\/\/|%2f|%5c|%00/i);
        },
      ),
    );
  });
});

describe("isManagementPath", () => {
  it("tells pages and API from git, whose errors are plain text", () => {
    for (const path of ["/api/%zz", "/Admin//x", "/auth/../x?y"])
      assert.equal(isManagementPath(path), true, path);
    for (const path of ["/org/r/../info/refs", "/", "//api", "/apis/x", ""]) {
      assert.equal(isManagementPath(path), false, path);
    }
  });
});

describe("VirtualHosts", () => {
  const options = {
    baseUrl: "https://svc.corp:8443",
    hostUrl: "https://github.com",
    apiUrl: "https://api.github.com",
  };

  it("management comes first; other names only if nothing is said about them", () => {
    const table: readonly [string | undefined, VirtualHost, VirtualHost][] = [
      ["svc.corp:8443", "management", "management"],
      ["127.0.0.1:1", "management", "management"],
      ["[::1]:80", "management", "management"],
      ["localhost", "management", "management"],
      ["github.com", "code_host", "code_host"],
      ["GitHub.com:443", "code_host", "code_host"],
      ["api.github.com", "code_host_api", "code_host_api"],
      ["admin.corp", "management", "management"],
      ["stranger", "management", "unknown"],
      [undefined, "management", "management"],
    ];
    const open = new VirtualHosts(options);
    const closed = new VirtualHosts({ ...options, managementHost: "admin.corp" });
    for (const [host, openly, strictly] of table) {
      assert.equal(open.of(host, "/x"), openly, `open ${host}`);
      assert.equal(closed.of(host, "/x"), strictly, `closed ${host}`);
    }
  });

  it("where both names are one, the API's path tells", () => {
    const virtualHosts = new VirtualHosts({
      ...options,
      hostUrl: "https://ghe.corp",
      apiUrl: "https://ghe.corp/api/v3",
    });
    assert.equal(virtualHosts.of("ghe.corp", "/api/v3/user"), "code_host_api");
    assert.equal(virtualHosts.of("ghe.corp", "/api/v30"), "code_host");
    assert.equal(virtualHosts.of("ghe.corp", "/o/r/info/refs"), "code_host");
  });
});

describe("rewriteLocation", () => {
  const asked = new URL("https://github.com/o/r.git/info/refs?service=git-upload-pack");
  it("gives our path for the code host's own addresses, and never another host's", () => {
    const table: readonly [string, string | undefined][] = [
      [
        "https://github.com/o/new.git/info/refs?service=git-upload-pack",
        "/o/new.git/info/refs?service=git-upload-pack",
      ],
      ["http://github.com/o/new", "/o/new"],
      ["/o/new", "/o/new"],
      ["https://github.com//evil.example/x", "/evil.example/x"],
      ["https://github.com.evil.example/x", undefined],
      ["//evil.example/x", undefined],
      ["https://github.com:444/x", undefined],
      ["javascript:alert(1)", undefined],
    ];
    for (const [location, expected] of table) {
      const redirect = rewriteLocation(location, asked, "");
      assert.equal(redirect.kind === "ours" ? redirect.location : undefined, expected, location);
    }
    const stripped = rewriteLocation("/base/o/new", new URL("https://h/base/o/r"), "/base");
    assert.deepEqual(stripped, { kind: "ours", location: "/o/new" });
  });
});

describe("RepositoryLabelling", () => {
  it("keeps series of listed names and of the first 200 others, and sums the rest", () => {
    const labels = new RepositoryLabelling();
    labels.listed("Org", "Once");
    assert.deepEqual(labels.unlisted("org", "once", false), { owner: "Org", repo: "Once" });
    assert.deepEqual(labels.unlisted("x", "refused", false), { owner: "", repo: "" });
    for (let n = 0; n < MAX_UNLISTED_SERIES; n++) labels.unlisted("x", `r${n}`, true);
    assert.deepEqual(labels.unlisted("x", "late", true), { owner: "", repo: "" });
    assert.deepEqual(labels.unlisted("X", "R7", false), { owner: "x", repo: "r7" });
  });
});
