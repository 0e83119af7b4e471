import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { encodePublicKey, publicKeyOf, type SignedData } from "@devplat/ssh-protocol";
import type { KeyRestrictions } from "../identity.ts";
import { isForwarded, listingOf, signatureFault, type NamedSession, type Origin } from "./permission.ts";

const NONE: KeyRestrictions = { hosts: undefined, via: undefined, namespaces: undefined, confirm: undefined };
const newKey = (): Buffer => encodePublicKey(publicKeyOf(generateKeyPairSync("ed25519").publicKey));
const KEY = newKey();
const OTHER_KEY = newKey();

const sessionIdOf = (name: string): Buffer => Buffer.from(`session of ${name}`);
const hostKeyOf = (name: string): Buffer => Buffer.from(`host key of ${name}`);

/** A session with a host. A name that begins with `?` is unknown to known_hosts. */
const session = (name: string, isForwarding: boolean): NamedSession => ({
  hostKey: hostKeyOf(name),
  sessionId: sessionIdOf(name),
  isForwarding,
  names: name.startsWith("?") ? [] : [name],
});

/** Origin of `a>b>web`: forwarded through a and b, for a login at web. `a>b>` is forwarded to b. */
function originOf(way: string): Origin {
  if (way === "local" || way === "unknown") return { kind: way };
  const isForwarding = way.endsWith(">");
  const names = way.split(">").filter((name) => name !== "");
  const sessions = names.map((name, at) => session(name, isForwarding || at < names.length - 1));
  return { kind: "bound", sessions: sessions as [NamedSession, ...NamedSession[]] };
}

const login = (
  to: string,
  { hostKey, key = KEY, user = "alice" }: { hostKey?: string; key?: Buffer; user?: string } = {},
): SignedData => ({
  kind: "userauth",
  request: {
    sessionId: sessionIdOf(to),
    user,
    algorithm: "ssh-ed25519",
    publicKey: key,
    hostKey: hostKey === undefined ? undefined : hostKeyOf(hostKey),
  },
});
const sshsig = (namespace: string): SignedData => ({
  kind: "sshsig",
  data: { namespace, hash: "sha256", digest: Buffer.alloc(32) },
});

const WEB = { ...NONE, hosts: ["web"] };
const VIA = { ...NONE, hosts: ["web"], via: ["a", "b"] };
const ALICE = { ...NONE, hosts: ["alice@web"] };
const DIRECT = { ...NONE, hosts: ["web"], via: [] };

describe("listing of keys", () => {
  const table: [name: string, KeyRestrictions, way: string, ReturnType<typeof listingOf>][] = [
    ["no restriction, local", NONE, "local", "listed"],
    ["no restriction, unknown", NONE, "unknown", "listed"],
    ["no restriction, an unknown host", NONE, "?x", "listed"],
    ["namespaces only", { ...NONE, namespaces: ["git"] }, "unknown", "listed"],
    ["hosts, local", WEB, "local", "marked"],
    ["hosts, unknown", WEB, "unknown", "withheld"],
    ["hosts, that host", WEB, "web", "listed"],
    ["hosts, another host", WEB, "db", "withheld"],
    ["hosts, a host without a name", WEB, "?web", "withheld"],
    ["any host, a host without a name", { ...NONE, hosts: ["*"] }, "?web", "withheld"],
    ["hosts, through any host", WEB, "a>web", "listed"],
    ["hosts, forwarded to another host, before a later login", WEB, "a>", "withheld"],
    ["hosts, forwarded to that host", WEB, "web>", "withheld"],
    ["hosts and namespaces, forwarded to that host", { ...WEB, namespaces: ["git"] }, "web>", "listed"],
    ["hosts and namespaces, forwarded to another host", { ...WEB, namespaces: ["git"] }, "a>", "withheld"],
    ["via and namespaces, forwarded on the way", { ...VIA, namespaces: ["git"] }, "a>", "listed"],
    ["via and namespaces, forwarded to the end", { ...VIA, namespaces: ["git"] }, "a>b>web>", "listed"],
    ["via, the whole way", VIA, "a>b>web", "listed"],
    ["via, a part of the way", VIA, "a>web", "withheld"],
    ["via, direct", VIA, "web", "withheld"],
    ["via, another order", VIA, "b>a>web", "withheld"],
    ["via, one host more", VIA, "a>b>c>web", "withheld"],
    ["via, an unknown hop", VIA, "a>?b>web", "withheld"],
    ["via, forwarded to the first hop", VIA, "a>", "listed"],
    ["via, forwarded to the last hop", VIA, "a>b>", "listed"],
    ["via, forwarded further", VIA, "a>b>c>", "withheld"],
    ["via, forwarded to another host", VIA, "x>", "withheld"],
    ["direct only, direct", DIRECT, "web", "listed"],
    ["direct only, through a host", DIRECT, "a>web", "withheld"],
    ["direct only, forwarded", DIRECT, "web>", "withheld"],
    ["via without hosts", { ...NONE, via: ["a"] }, "a>anything", "listed"],
    ["via without hosts, local", { ...NONE, via: ["a"] }, "local", "marked"],
    ["a rejected host", { ...NONE, hosts: ["*", "!web"] }, "web", "withheld"],
    ["a user of that host", ALICE, "web", "listed"],
    ["a user of another host", ALICE, "db", "withheld"],
    ["a rejected user of that host", { ...NONE, hosts: ["*", "!root@web"] }, "web", "listed"],
    ["a user and namespaces, forwarded to that host", { ...ALICE, namespaces: ["git"] }, "web>", "withheld"],
  ];
  for (const [name, restrictions, way, expected] of table) {
    it(`${name}: ${expected}`, () => assert.equal(listingOf(restrictions, originOf(way)), expected));
  }
});

describe("signatures for logins", () => {
  const table: [name: string, KeyRestrictions, way: string, SignedData, fault: RegExp | undefined][] = [
    ["no restriction, without a bind", NONE, "local", login("x"), undefined],
    ["no restriction, a bound session", NONE, "web", login("web"), undefined],
    ["no restriction, another session", NONE, "web", login("db"), /another session/],
    ["no restriction, another host key", NONE, "web", login("web", { hostKey: "db" }), /another host key/],
    [
      "no restriction, another key in the request",
      NONE,
      "web",
      login("web", { key: OTHER_KEY }),
      /another key/,
    ],
    ["no restriction, an older client on a hop", NONE, "a>", login("web"), undefined],
    ["no restriction, a login at the hop itself", NONE, "a>", login("a"), /bound for forwarding/],
    ["no restriction, a login at an earlier hop", NONE, "a>b>", login("a"), /bound for forwarding/],
    ["hosts, without a bind", WEB, "local", login("web"), /no session-bind/],
    ["hosts, unknown", WEB, "unknown", login("web"), /no session-bind/],
    ["hosts, that host", WEB, "web", login("web"), undefined],
    ["hosts, that host by the host-bound method", WEB, "web", login("web", { hostKey: "web" }), undefined],
    ["hosts, another host", WEB, "db", login("db", { hostKey: "db" }), /not for this host/],
    ["hosts, a claimed session", WEB, "web", login("db", { hostKey: "db" }), /another session/],
    ["hosts, forwarded to that host", WEB, "web>", login("web", { hostKey: "web" }), /bound for forwarding/],
    ["hosts, an older client on a hop", WEB, "a>", login("web", { hostKey: "web" }), /bound for forwarding/],
    ["hosts, through a host", WEB, "a>web", login("web", { hostKey: "web" }), undefined],
    ["hosts, through a host, not host-bound", WEB, "a>web", login("web"), /does not name the host key/],
    ["a user, that user", ALICE, "web", login("web"), undefined],
    [
      "a user, another one",
      ALICE,
      "web",
      login("web", { user: "bob" }),
      /not for the user "bob" of this host/,
    ],
    ["a user, on another host", ALICE, "db", login("db"), /not for this host/],
    [
      "a user, another one through a host",
      ALICE,
      "a>web",
      login("web", { user: "bob", hostKey: "web" }),
      /not for the user "bob"/,
    ],
    [
      "a rejected user",
      { ...NONE, hosts: ["*", "!root@*"] },
      "web",
      login("web", { user: "root" }),
      /not for the user "root"/,
    ],
    [
      "a user whose name has control characters",
      ALICE,
      "web",
      login("web", { user: "\u001b[2J" }),
      /not for the user "\P{Cc}+" of this host/u,
    ],
    ["via, the whole way", VIA, "a>b>web", login("web", { hostKey: "web" }), undefined],
    ["via, direct", VIA, "web", login("web", { hostKey: "web" }), /not through these hosts/],
    ["via, a hop as the destination", VIA, "a>b", login("b", { hostKey: "b" }), /not through these hosts/],
  ];
  for (const [name, restrictions, way, purpose, fault] of table) {
    it(`${name}: ${fault === undefined ? "signed" : "refused"}`, () => {
      const found = signatureFault({ key: KEY, restrictions }, originOf(way), purpose);
      if (fault === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", fault);
    });
  }
});

describe("other signatures", () => {
  const GIT = { ...NONE, namespaces: ["git"] };
  const table: [name: string, KeyRestrictions, way: string, SignedData, fault: RegExp | undefined][] = [
    ["no restriction, a signature", NONE, "local", sshsig("file"), undefined],
    ["namespaces, one of them", GIT, "local", sshsig("git"), undefined],
    ["namespaces, another", GIT, "local", sshsig("file"), /namespace/],
    ["namespaces, one of them from another host", GIT, "a>", sshsig("git"), undefined],
    ["namespaces do not restrict logins", GIT, "local", login("web"), undefined],
    ["hosts, a signature on this host", WEB, "local", sshsig("git"), undefined],
    ["hosts, a signature from that host", WEB, "web>", sshsig("git"), /may not have data signed/],
    ["hosts, a signature for an unknown host", WEB, "unknown", sshsig("git"), /may not have data signed/],
    [
      "hosts and namespaces, from that host",
      { ...WEB, namespaces: ["git"] },
      "web>",
      sshsig("git"),
      undefined,
    ],
    [
      "hosts and namespaces, from another host",
      { ...WEB, namespaces: ["git"] },
      "a>",
      sshsig("git"),
      /may not/,
    ],
    [
      "via and namespaces, from a host on the way",
      { ...VIA, namespaces: ["git"] },
      "a>",
      sshsig("git"),
      /may not/,
    ],
    [
      "a user and namespaces, from that host",
      { ...ALICE, namespaces: ["git"] },
      "web>",
      sshsig("git"),
      /may not have data signed/,
    ],
    ["no restriction, other data", NONE, "local", { kind: "unknown" }, undefined],
    ["hosts, other data", WEB, "local", { kind: "unknown" }, /neither a login/],
    ["hosts, other data for that host", WEB, "web", { kind: "unknown" }, /neither a login/],
    ["via, other data", { ...NONE, via: ["a"] }, "a>", { kind: "unknown" }, /neither a login/],
    ["namespaces, other data", GIT, "local", { kind: "unknown" }, /neither a login/],
  ];
  for (const [name, restrictions, way, purpose, fault] of table) {
    it(`${name}: ${fault === undefined ? "signed" : "refused"}`, () => {
      const found = signatureFault({ key: KEY, restrictions }, originOf(way), purpose);
      if (fault === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", fault);
    });
  }
});

const names = fc.constantFrom("a", "b", "web", "?a", "?web");
const patterns = fc.constantFrom("a", "b", "web", "*", "?eb", "!a", "alice@web", "!bob@web", "b?b@*");
const restrictionsOf = fc.record({
  hosts: fc.option(fc.array(patterns, { maxLength: 3 }), { nil: undefined }),
  via: fc.option(fc.array(patterns, { maxLength: 3 }), { nil: undefined }),
  namespaces: fc.option(fc.array(fc.constantFrom("git", "file"), { maxLength: 2 }), { nil: undefined }),
  confirm: fc.constant(undefined),
});
const ways = fc.oneof(
  fc.constantFrom("local", "unknown"),
  fc
    .tuple(fc.array(names, { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([hosts, isForwarding]) => hosts.join(">") + (isForwarding ? ">" : "")),
);
const requests = fc
  .tuple(names, fc.option(names, { nil: undefined }), fc.boolean(), fc.constantFrom("alice", "bob"))
  .map(([to, hostKey, isOwn, user]) =>
    login(to, { ...(hostKey !== undefined && { hostKey }), key: isOwn ? KEY : OTHER_KEY, user }),
  );

describe("permissions in general", () => {
  it("a key for hosts logs in only to the last bound session, under its host key", () => {
    fc.assert(
      fc.property(restrictionsOf, ways, requests, (restrictions, way, purpose) => {
        const origin = originOf(way);
        if (purpose.kind !== "userauth") return;
        if (signatureFault({ key: KEY, restrictions }, origin, purpose) !== undefined) return;
        assert.ok(purpose.request.publicKey.equals(KEY));
        if (restrictions.hosts === undefined && restrictions.via === undefined) return;
        assert.ok(origin.kind === "bound");
        const last = origin.sessions.at(-1);
        assert.ok(last?.isForwarding === false);
        assert.ok(purpose.request.sessionId.equals(last.sessionId));
        assert.ok(purpose.request.hostKey === undefined || purpose.request.hostKey.equals(last.hostKey));
        assert.equal(listingOf(restrictions, origin), "listed");
        if (restrictions.hosts !== undefined) assert.ok(last.names.length > 0);
        if (restrictions.via !== undefined) assert.equal(restrictions.via.length, origin.sessions.length - 1);
      }),
    );
  });

  it("a restriction never permits more than none", () => {
    fc.assert(
      fc.property(
        restrictionsOf,
        ways,
        fc.oneof(requests, fc.constant(sshsig("git"))),
        (all, way, purpose) => {
          const origin = originOf(way);
          const without = signatureFault({ key: KEY, restrictions: NONE }, origin, purpose);
          if (without !== undefined)
            assert.notEqual(signatureFault({ key: KEY, restrictions: all }, origin, purpose), undefined);
        },
      ),
    );
  });

  it("a connection is forwarded if one of its sessions is, or if nobody knows", () => {
    fc.assert(
      fc.property(ways, (way) => {
        const expected = way === "unknown" || way.endsWith(">") || way.split(">").length > 1;
        assert.equal(isForwarded(originOf(way)), expected && way !== "local");
      }),
    );
  });
});
