import assert from "node:assert/strict";
import { readdir, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, startCodeHost, type CodeHost } from "@devplat/testkit";
import {
  ACCEL_SECRET,
  startAccelStand,
  type AccelKind,
  type AccelStand,
  type WebChange,
} from "./svc-accel-stand.ts";

const PROBE_PATH = "/_svc_accel_probe/";
const isRoot = process.getuid?.() === 0;

interface WrongSetup {
  readonly name: string;
  readonly change: WebChange;
  readonly expected: RegExp;
}

/** Replaces a text that the guide has. */
function replacing(from: string, to: string): WebChange {
  return {
    edit: (text) => {
      assert.ok(text.includes(from), from);
      return text.replace(from, to);
    },
  };
}

const COMMON: readonly WrongSetup[] = [
  {
    name: "a wrong secret",
    change: replacing(ACCEL_SECRET, "w".repeat(40)),
    expected: /a wrong x-svc-accel/,
  },
  ...(isRoot
    ? [
        {
          name: "a user who is not in the group",
          change: { group: "nogroup" },
          expected: /403.*member of the group www-data.*restarted/,
        },
      ]
    : []),
];
const WRONG: Record<AccelKind, readonly WrongSetup[]> = {
  nginx: [
    ...COMMON,
    {
      name: "no header",
      change: replacing("proxy_set_header X-Svc-Accel", "proxy_set_header X-Other"),
      expected: /without x-svc-accel/,
    },
    {
      name: "a wrong alias",
      change: replacing("_accel/;", "accel/;"),
      expected: /404.*alias must be .*\/_accel\/$/,
    },
    {
      name: "an alias without the last slash",
      change: replacing("_accel/;", "_accel;"),
      expected: /404.*alias must be/,
    },
    {
      name: "a location of another name",
      change: replacing("location /_svc_accel/", "location /_accel/"),
      expected: /passed \/_svc_accel\/ on to svc/,
    },
    {
      name: "an ignored header",
      change: replacing(
        "proxy_buffering off;",
        "proxy_buffering off; proxy_ignore_headers X-Accel-Redirect; proxy_pass_header X-Accel-Redirect;",
      ),
      expected: /did not follow X-Accel-Redirect/,
    },
    {
      name: "a filter that changes bytes",
      change: replacing("gzip off;", 'sub_filter_types *; sub_filter_once off; sub_filter "0" "zero";'),
      expected: /sent other bytes/,
    },
    {
      name: "a wrong address of the service",
      change: replacing("proxy_pass http://127.0.0.1:", "proxy_pass http://127.0.0.2:1; #"),
      expected: /answers 502/,
    },
  ],
  caddy: [
    ...COMMON,
    {
      name: "no header",
      change: replacing("header_up X-Svc-Accel", "header_up X-Other"),
      expected: /without x-svc-accel/,
    },
    {
      name: "a wrong root",
      change: replacing("/_accel\n", "/accel\n"),
      expected: /404.*root must be .*\/_accel/,
    },
    {
      name: "a prefix of another name",
      change: replacing("strip_prefix /_svc_accel", "strip_prefix /_other"),
      expected: /404.*strip_prefix \/_svc_accel/,
    },
    {
      name: "no block for the header",
      change: replacing("@accel header X-Accel-Redirect *", "@accel header X-Other *"),
      expected: /did not follow X-Accel-Redirect/,
    },
  ],
};

let codeHost: CodeHost;
before(async () => {
  codeHost = await startCodeHost();
});
after(() => codeHost.stop());

for (const kind of ["nginx", "caddy"] satisfies AccelKind[]) {
  describe(`svc doctor with ${kind}`, { timeout: 240_000 }, () => {
    let stand: AccelStand;
    const handed = (): string => join(stand.storagePath, "_accel");
    before(async () => {
      stand = await startAccelStand(kind, codeHost);
    });
    after(() => stand.stop());

    it("tries the way of the bytes, and leaves no file behind", async () => {
      const { state, detail } = await stand.doctor();
      assert.equal(state, "ok", detail);
      assert.ok(detail.includes(`${kind} at ${stand.url} sends files of ${handed()}`), detail);
      assert.deepEqual(await readdir(handed()), []);
    });

    for (const { name, change, expected } of WRONG[kind]) {
      it(`names the cause: ${name}`, async () => {
        await stand.restartWeb(change);
        const { state, detail } = await stand.doctor();
        assert.equal(state, "fault", detail);
        assert.match(detail, expected);
        assert.ok(!detail.includes(ACCEL_SECRET));
        assert.deepEqual(await readdir(handed()), []);
      });
    }

    it("asks another address than the base address, with the name of that", async () => {
      await stand.restartWeb({});
      const unreachable = { SVC_SERVER_BASE_URL: "https://localhost:1" };
      const untried = await stand.doctor([], unreachable);
      assert.equal(untried.state, "warning");
      assert.match(untried.detail, /^not tried .*localhost:1 cannot be reached from here \(ECONNREFUSED\)/);
      const named = { SVC_SERVER_BASE_URL: "https://localhost" };
      const tried = await stand.doctor(["--accel-url", stand.url], named);
      assert.equal(tried.state, "ok", tried.detail);
      // Past the web server.
      const direct = await stand.doctor(["--accel-url", stand.svc.url]);
      assert.match(direct.detail, /without x-svc-accel/);
      assert.equal(direct.state, "fault");
    });

    it("shows nothing to callers who do not know a probe file", async () => {
      const name = `probe-${"0".repeat(32)}`;
      const bodyOf = async (path: string): Promise<string> => {
        const response = await fetch(stand.svc.url + path, { headers: { "x-svc-accel": ACCEL_SECRET } });
        assert.equal(response.status, 404);
        assert.equal(response.headers.get("x-accel-redirect"), null);
        return await response.text();
      };
      const other = await bodyOf("/_svc_other/x");
      for (const path of [
        PROBE_PATH,
        `${PROBE_PATH}${name}`,
        `${PROBE_PATH}probe-..`,
        `/_svc_accel/${name}`,
      ]) {
        assert.equal(await bodyOf(path), other, path);
      }
      // A file that was handed over has a name of another form, and an old probe does not count.
      await writeFile(join(handed(), "0".repeat(32)), "handed");
      await writeFile(join(handed(), name), "old");
      await utimes(join(handed(), name), new Date(0), new Date(0));
      for (const path of [`${PROBE_PATH}${"0".repeat(32)}`, `${PROBE_PATH}${name}`]) {
        assert.equal(await bodyOf(path), other, path);
      }
      await writeFile(join(handed(), name), "new");
      const known = await fetch(`${stand.svc.url}${PROBE_PATH}${name}`);
      assert.deepEqual(await known.json(), { refused: "missing" });
      const posted = await fetch(`${stand.svc.url}${PROBE_PATH}${name}`, { method: "POST" });
      assert.equal(posted.status, 404);
      // The next doctor removes what one left behind that was killed, and nothing else.
      await utimes(join(handed(), name), new Date(0), new Date(0));
      await writeFile(join(handed(), `probe-${"1".repeat(32)}`), "of another doctor");
      assert.equal((await stand.doctor()).state, "ok");
      assert.deepEqual((await readdir(handed())).toSorted(), ["0".repeat(32), `probe-${"1".repeat(32)}`]);
    });
  });
}

describe("svc doctor without a way to the web server", { timeout: 240_000 }, () => {
  it("says that nothing was tried without the service, and names a foreign service", async () => {
    const stand = await startAccelStand("nginx", codeHost);
    // Another instance, with another cache folder.
    const other = createServer((_request, response) => {
      response.writeHead(404, { "content-type": "application/problem+json" }).end("{}");
    }).listen(0, "127.0.0.1");
    try {
      await once(other, "listening");
      const address = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      const foreign = await stand.doctor(["--accel-url", address]);
      assert.equal(foreign.state, "warning");
      assert.match(foreign.detail, /^not tried .*does not know the probe .*another instance/);
      await stand.svc.stop();
      const { state, detail } = await stand.doctor();
      assert.equal(state, "warning");
      assert.match(detail, /^not tried .* svc is not running/);
    } finally {
      other.close();
      await stand.stop();
    }
  });

  it(
    "says which user is not a member of the group, and not to open the cache",
    { skip: !isRoot },
    async () => {
      const stand = await startAccelStand("nginx", codeHost);
      try {
        await stand.svc.stop();
        const { stdout } = await run("id", ["-nG", "nobody"]);
        assert.ok(!stdout.includes("www-data"));
        const { state, detail } = await stand.doctor([], {}, "nobody");
        assert.equal(state, "fault");
        assert.match(
          detail,
          /the user nobody is not a member of the group www-data.*usermod -aG www-data nobody/,
        );
        assert.doesNotMatch(detail, /chmod/);
      } finally {
        await stand.stop();
      }
    },
  );
});
