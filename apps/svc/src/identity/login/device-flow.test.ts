import type { Identity } from "../principal.ts";
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { memoryStore } from "../../storage/memory.test-kit.ts";
import type { Store } from "../../storage/store.ts";
import { NO_CLIENT, type Client } from "../client.ts";
import { DeviceFlow } from "./device-flow.ts";
import { readUserCode, userCode } from "./random.ts";
import { Sessions } from "./sessions.ts";
import type { AuditEvent } from "../../audit/audit-event.ts";

const DEVICE: Client = { address: "192.0.2.9", userAgent: "svc/1", requestId: undefined };

describe("the device flow (RFC 8628)", () => {
  let store: Store;
  let now: number;
  let flow: DeviceFlow;
  let sessions: Sessions;
  let alice: Identity;
  let events: AuditEvent[];
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };

  beforeEach(async () => {
    now = Date.UTC(2026, 0, 1);
    store = await memoryStore();
    events = [];
    sessions = new Sessions(store, clock, { admins: [], recordedRoles: false });
    flow = new DeviceFlow({ store, sessions, clock, audit: { record: (event) => void events.push(event) } });
    alice = (await sessions.start(await store.users.ensure("alice", "u1", now), "user", NO_CLIENT)).identity;
  });
  afterEach(async () => store.close());

  const poll = async (code: string, clientId = "cli"): Promise<string> => {
    const answer = await flow.poll(code, clientId, DEVICE);
    return answer.kind === "error" ? answer.error : answer.session.identity.login;
  };

  it("gives the session of the person who approves, once", async () => {
    const begun = await flow.begin("cli", DEVICE);
    now += 5000;
    assert.equal(await poll(begun.deviceCode), "authorization_pending");
    assert.deepEqual(await flow.find(begun.userCode.toLowerCase().replace("-", " ")), {
      userCode: begun.userCode,
      clientId: "cli",
      address: "192.0.2.9",
      at: now - 5000,
      wantsAdmin: false,
    });
    await flow.decide(begun.userCode, alice, "user", NO_CLIENT);
    const answer = await flow.poll(begun.deviceCode, "cli", DEVICE);
    assert.equal(answer.kind, "session");
    if (answer.kind !== "session") return;
    const { token, record } = answer.session;
    assert.equal((await sessions.authenticate(token.reveal()))?.login, "alice");
    assert.deepEqual([record.createdIp, record.userAgent], ["192.0.2.9", "cli, svc/1"]);
    assert.equal(await poll(begun.deviceCode), "expired_token");
    assert.deepEqual(
      events.map(({ action, target }) => [action, target]),
      [["login.succeeded", "cli"]],
    );
  });

  it("of racing questions exactly one gets the session", async () => {
    const { deviceCode, userCode: code } = await flow.begin("cli", DEVICE);
    await flow.decide(code, alice, "user", NO_CLIENT);
    const answers = await Promise.all(Array.from({ length: 5 }, async () => poll(deviceCode)));
    assert.equal(answers.filter((answer) => answer === "alice").length, 1);
  });

  it("access_denied when the person declines", async () => {
    const { deviceCode, userCode: code } = await flow.begin("cli", DEVICE);
    await flow.decide(code, alice, "deny", NO_CLIENT);
    assert.equal(await poll(deviceCode), "access_denied");
  });

  /** The identity of a session that was approved with this answer. */
  const approved = async (answer: "user" | "admin", who: Identity): Promise<Identity | undefined> => {
    const begun = await flow.begin("cli", DEVICE, true);
    await flow.decide(begun.userCode, who, answer, NO_CLIENT);
    const given = await flow.poll(begun.deviceCode, "cli", DEVICE);
    return given.kind === "session" ? sessions.authenticate(given.session.token.reveal()) : undefined;
  };

  it("a program is an admin only if its admin says so, and while the admin is one [svc 8.11]", async () => {
    sessions.setAdmins(["alice"]);
    const admin: Identity = { ...alice, role: "admin" };
    assert.deepEqual(
      [(await approved("user", admin))?.role, (await approved("admin", admin))?.role],
      ["user", "admin"],
    );
    const begun = await flow.begin("cli", DEVICE, true);
    await flow.decide(begun.userCode, admin, "admin", NO_CLIENT);
    const given = await flow.poll(begun.deviceCode, "cli", DEVICE);
    const token = given.kind === "session" ? given.session.token.reveal() : "";
    sessions.setAdmins([]);
    assert.equal((await sessions.authenticate(token))?.role, "user");
  });

  it("a user gives no admin role, also not one that comes later", async () => {
    assert.equal((await approved("admin", alice))?.role, "user");
    const later = await flow.begin("cli", DEVICE);
    await flow.decide(later.userCode, alice, "admin", NO_CLIENT);
    sessions.setAdmins(["alice"]);
    const given = await flow.poll(later.deviceCode, "cli", DEVICE);
    assert.equal(given.kind === "session" ? given.session.identity.role : "", "user");
  });

  it("a program approves no program", async () => {
    const device = await approved("user", alice);
    assert.equal(device?.device, "cli");
    const begun = await flow.begin("cli", DEVICE);
    for (const who of [device, { ...alice, kind: "administration" as const }]) {
      await assert.rejects(flow.decide(begun.userCode, who ?? alice, "user", NO_CLIENT), {
        code: "forbidden",
      });
    }
    assert.equal(await poll(begun.deviceCode), "slow_down");
  });

  it("slow_down when the device asks too fast, by 5 seconds more each time", async () => {
    const { deviceCode } = await flow.begin("cli", DEVICE);
    now += 1000;
    assert.equal(await poll(deviceCode), "slow_down");
    now += 9000;
    assert.equal(await poll(deviceCode), "slow_down");
    now += 15_000;
    assert.equal(await poll(deviceCode), "authorization_pending");
  });

  it("expired_token after 15 minutes, and the code approves nothing", async () => {
    const { deviceCode, userCode: code } = await flow.begin("cli", DEVICE);
    now += 15 * 60_000;
    assert.equal(await poll(deviceCode), "expired_token");
    assert.equal(await flow.find(code), undefined);
    await assert.rejects(flow.decide(code, alice, "user", NO_CLIENT), { code: "not_found" });
  });

  it("a code is decided once", async () => {
    const { userCode: code } = await flow.begin("cli", DEVICE);
    const outcomes = await Promise.allSettled(
      (["user", "deny", "admin"] as const).map(async (answer) => flow.decide(code, alice, answer, NO_CLIENT)),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    await assert.rejects(flow.decide(code, alice, "user", NO_CLIENT), { code: "not_found" });
  });

  it("a device code of another client, and one that was never given out, give nothing", async () => {
    const { deviceCode, userCode: code } = await flow.begin("cli", DEVICE);
    await flow.decide(code, alice, "user", NO_CLIENT);
    assert.equal(await poll(deviceCode, "other"), "invalid_grant");
    assert.equal(await poll("guess"), "expired_token");
    assert.equal(await poll(code), "expired_token");
    assert.equal(await flow.find(deviceCode), undefined);
  });

  it("neither code is stored in the clear", async () => {
    const { deviceCode, userCode: code } = await flow.begin("cli", DEVICE);
    for (const kind of ["device_code", "user_code"]) {
      for (const text of [deviceCode, code])
        assert.equal(await store.oneTime.get(kind, text, now), undefined);
    }
  });

  it("a user code is 8 letters without vowels, and is read however it is typed", () => {
    assert.match(userCode(), /^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
    assert.equal(readUserCode(" bcdf ghjk "), "BCDF-GHJK");
    for (const none of ["", "BCDF", "BCDF-GHJA", "BCDF-GHJKL", "ＢCDF-GHJK"]) {
      assert.equal(readUserCode(none), undefined);
    }
  });
});
