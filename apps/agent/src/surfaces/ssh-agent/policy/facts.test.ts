import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SignedData } from "@devplat/ssh-protocol";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import { destinationOf, factsOf, hopsOf, purposeText, wayOf } from "./facts.ts";
import type { NamedSession, Origin } from "./permission.ts";

const session = (names: readonly string[], isForwarding = false): NamedSession => ({
  hostKey: Buffer.from(`key of ${names.join()}`),
  sessionId: Buffer.from("session"),
  isForwarding,
  names,
});
const login = (user: string): SignedData => ({
  kind: "userauth",
  request: {
    sessionId: Buffer.from("session"),
    user,
    algorithm: "ssh-ed25519",
    publicKey: Buffer.alloc(0),
    hostKey: undefined,
  },
});
const GIT: SignedData = {
  kind: "sshsig",
  data: { namespace: "git", hash: "sha256", digest: Buffer.alloc(32) },
};
const LOCAL: Origin = { kind: "local" };
const UNKNOWN: Origin = { kind: "unknown" };
const bound = (first: NamedSession, ...more: NamedSession[]): Origin => ({
  kind: "bound",
  sessions: [first, ...more],
});
const CALLER: PeerProcess = {
  pid: 7,
  startTime: "70",
  name: "ssh",
  program: "/usr/bin/ssh",
  parent: 6,
  session: 5,
  isBackground: false,
  isZombie: false,
  sessionStart: "50",
  ancestors: [
    {
      pid: 6,
      startTime: "60",
      name: "git",
      program: "/usr/bin/git",
      parent: 5,
      session: 5,
      isBackground: false,
      isZombie: false,
    },
  ],
};

describe("facts of a question", () => {
  const table: [name: string, Origin, SignedData, text: string, verified: boolean][] = [
    ["a known host", bound(session(["web"])), login("alice"), "Log in as alice to web", true],
    [
      "a host without a name",
      bound(session([])),
      login("alice"),
      "Log in as alice to an unknown host with the key SHA256:qXZbcsEOvbCGdOphbPOBsIYIrfcGnjDoMmT7qUJTKpE",
      false,
    ],
    ["no bind", LOCAL, login("alice"), "Log in as alice to a host that the client does not name", false],
    ["an unknown client", UNKNOWN, login("a"), "Log in as a to a host that the client does not name", false],
    [
      "an older client on a host",
      bound(session(["jump"], true)),
      login("alice"),
      "Log in as alice to a host that the client does not name",
      false,
    ],
    ["a signature", LOCAL, GIT, "Sign data for git", true],
    ["other data", LOCAL, { kind: "unknown" }, "Sign data of an unknown kind", false],
  ];
  for (const [name, origin, purpose, text, verified] of table) {
    it(`${name}: ${verified ? "verified" : "claimed"}`, () => {
      const [fact] = factsOf(CALLER, origin, purpose);
      const expected = text.replace(/SHA256:\S+/, "");
      assert.equal(fact?.text.replace(/SHA256:\S+/, ""), expected);
      assert.equal(fact?.verified, verified);
    });
  }

  it("names the hosts on the way, and the programs", () => {
    const origin = bound(session(["a"], true), session([], true), session(["web"]));
    const texts = factsOf(CALLER, origin, login("alice")).slice(1);
    assert.match(
      texts[0]?.text ?? "",
      /^Through a forwarded agent: a, then an unknown host with the key SHA256:/,
    );
    assert.deepEqual(texts[1], { text: "By ssh (7), started by git (6)", verified: true });
    assert.deepEqual(factsOf(CALLER, UNKNOWN, GIT)[1], {
      text: "Possibly through a forwarded agent: the client does not say it",
      verified: false,
    });
  });

  it("a program whose file cannot be seen is only claimed", () => {
    const claimed = factsOf({ ...CALLER, program: undefined }, LOCAL, GIT).at(-1);
    assert.deepEqual(claimed, { text: "By ssh (7), started by git (6)", verified: false });
    assert.equal(factsOf(undefined, LOCAL, GIT).at(-1)?.verified, false);
  });

  it("text of the client stays on its line", () => {
    const hostile = "a\n\u001b[2Jroot\u202e";
    const [fact] = factsOf({ ...CALLER, program: undefined, name: hostile }, LOCAL, login(hostile));
    for (const text of [
      fact?.text ?? "",
      purposeText(login(hostile)),
      factsOf({ ...CALLER, program: undefined, name: hostile }, LOCAL, GIT).at(-1)?.text ?? "",
    ])
      assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
  });

  it("a destination is the last host, and a way differs by each host and user", () => {
    const direct = bound(session(["web"]));
    const through = bound(session(["jump"], true), session(["web"]));
    assert.equal(destinationOf(direct), "web");
    assert.equal(destinationOf(through), "web");
    assert.equal(destinationOf(LOCAL), undefined);
    assert.equal(destinationOf(bound(session(["jump"], true))), undefined, "an older client on that host");
    assert.deepEqual(hopsOf(through), ["jump"]);
    assert.deepEqual(hopsOf(UNKNOWN), []);
    const ways = [
      wayOf(direct, login("alice")),
      wayOf(through, login("alice")),
      wayOf(direct, login("bob")),
      wayOf(LOCAL, login("alice")),
      wayOf(UNKNOWN, login("alice")),
      wayOf(LOCAL, GIT),
    ];
    assert.equal(new Set(ways).size, ways.length);
  });
});
