import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, type Clock } from "@devplat/base";
import { SvcError } from "../../errors.ts";
import { AllowedUsers, type AllowedLogins } from "./allowed-users.ts";

const MINUTE = 60_000;
const ALICE = { userId: "u1", login: "Alice" };

describe("login.allowed_users and login.allowed_organizations, after the login", () => {
  let now: number;
  let asked: number;
  let organizations: readonly string[];
  let failure: SvcError | undefined;
  let credential: Secret | undefined;
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };

  beforeEach(() => {
    now = 0;
    asked = 0;
    organizations = ["acme"];
    failure = undefined;
    credential = new Secret("ghu_x");
  });

  const rules = (
    allowed: Partial<AllowedLogins>,
    recheckMs: number | undefined = 60 * MINUTE,
  ): AllowedUsers =>
    new AllowedUsers({
      oauth: {
        organizations: async () => {
          asked++;
          if (failure !== undefined) throw failure;
          return organizations;
        },
      },
      accounts: { accessToken: async () => credential },
      isAdmin: (login) => login === "root",
      allowed: { users: [], organizations: [], ...allowed },
      recheckMs,
      clock,
      logger: silentLogger,
    });

  it("who is named, an admin, and with empty lists everybody may, without a question", async () => {
    assert.equal(await rules({}).isStillAllowed(ALICE), true);
    assert.equal(await rules({ users: ["alice"] }).isStillAllowed(ALICE), true);
    assert.equal(await rules({ users: ["bob"] }).isStillAllowed({ userId: "u2", login: "root" }), true);
    assert.equal(await rules({ users: ["bob"] }).isStillAllowed(ALICE), false);
    assert.equal(asked, 0);
  });

  it("a reload counts from the next request on, for names and for organizations", async () => {
    const allowed = rules({});
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    allowed.setAllowed({ users: ["bob"], organizations: [] });
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    allowed.setAllowed({ users: [], organizations: ["ACME"] });
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    allowed.setAllowed({ users: [], organizations: ["other"] });
    assert.equal(await allowed.isStillAllowed(ALICE), false);
  });

  it("login.recheck_minutes: many requests look up a membership once in that time [svc 8.9]", async () => {
    const allowed = rules({ organizations: ["acme"] });
    assert.ok((await Promise.all([1, 2, 3].map(async () => allowed.isStillAllowed(ALICE)))).every(Boolean));
    organizations = [];
    now += 60 * MINUTE - 1;
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    assert.equal(asked, 1);
    now += 1;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    assert.equal(asked, 2);
  });

  it("login.recheck_minutes changes with a reload", async () => {
    const allowed = rules({ organizations: ["acme"] });
    allowed.setAllowed({ users: [], organizations: ["acme"] }, MINUTE);
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    organizations = [];
    now += MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
  });

  it("a refusal is checked again after a minute, and ends with a new login", async () => {
    organizations = [];
    const allowed = rules({ organizations: ["acme"] });
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    organizations = ["acme"];
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    now += MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    organizations = [];
    now += 60 * MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    allowed.confirm(ALICE.userId);
    assert.equal(await allowed.isStillAllowed(ALICE), true);
  });

  it("a failure of the code host changes nothing and is retried after a minute", async () => {
    const allowed = rules({ organizations: ["acme"] });
    failure = new SvcError("host_unreachable", "down");
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    failure = undefined;
    organizations = [];
    assert.equal(await allowed.isStillAllowed(ALICE), true);
    now += MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    failure = new SvcError("host_unreachable", "down");
    now += MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
  });

  it("a refused or missing credential is a refusal", async () => {
    const allowed = rules({ organizations: ["acme"] });
    failure = new SvcError("login_refused", "revoked");
    assert.equal(await allowed.isStillAllowed(ALICE), false);
    failure = undefined;
    credential = undefined;
    now += MINUTE;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
  });

  it("a response to a question under former lists is not remembered", async () => {
    const allowed = rules({ organizations: ["acme"] });
    const before = allowed.isStillAllowed(ALICE);
    allowed.setAllowed({ users: [], organizations: ["other"] });
    await before;
    assert.equal(await allowed.isStillAllowed(ALICE), false);
  });

  it("development mode asks nobody again", async () => {
    const allowed = new AllowedUsers({
      oauth: undefined,
      accounts: { accessToken: async () => undefined },
      isAdmin: () => false,
      allowed: { users: ["bob"], organizations: [] },
      recheckMs: undefined,
      clock,
      logger: silentLogger,
    });
    assert.equal(await allowed.isStillAllowed(ALICE), true);
  });
});
