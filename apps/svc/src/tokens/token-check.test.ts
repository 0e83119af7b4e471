import type { RequiredPermissions } from "../scopes/required-permissions.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret, silentLogger, systemClock } from "@devplat/base";
import type { HostAccounts } from "../code-host/host-account.ts";
import type {
  InstallationCredentials,
  InstallationOutcome,
} from "../identity/apps/installation-credentials.ts";
import { codeHostFor } from "../code-host/code-host-for.ts";
import { OwnAddress } from "../own-address.ts";
import type { TokenRecord } from "../storage/store.ts";
import type { Admission } from "./admission.ts";
import { createToken } from "../credentials/token-format.ts";
import { TokenCheck } from "./token-check.ts";
import type { TokenLookup } from "./token-lookup.ts";
import { TokenRate } from "./token-rate.ts";
import type { TokenUses } from "./token-uses.ts";

const RECORD: TokenRecord = {
  id: "t1",
  type: "proxy",
  tokenHash: "",
  tokenStart: "",
  userId: "u1",
  repositories: ["acme/widgets", "acme/tools"],
  scopes: { metadata: "read", issues: "write", contents: "read" },
  description: undefined,
  sessionId: undefined,
  appId: undefined,
  installation: undefined,
  ipAllow: [],
  requestsPerMinute: undefined,
  mintedBy: undefined,
  createdAt: 0,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
  lastIp: undefined,
  useCount: 0,
};

interface Given {
  readonly record?: Partial<TokenRecord>;
  readonly accounts?: Partial<HostAccounts>;
  readonly outcome?: InstallationOutcome;
  readonly stillAllowed?: boolean;
}

function checkOf({ record = {}, accounts = {}, outcome, stillAllowed = true }: Given): {
  check: TokenCheck;
  used: string[];
} {
  const used: string[] = [];
  const installations: InstallationCredentials | undefined =
    outcome === undefined
      ? undefined
      : {
          forToken: async () => outcome,
          forRepository: async () => undefined,
          revokeFor: async () => undefined,
        };
  const check = new TokenCheck({
    lookup: {
      find: async () => ({ record: { ...RECORD, ...record }, login: "alice", addresses: undefined }),
    } as unknown as TokenLookup,
    uses: { count: (id: string) => void used.push(id) } as unknown as TokenUses,
    rate: new TokenRate(0, systemClock),
    accounts: {
      accessToken: async () => new Secret("ghu_stored"),
      renewAfterRefusal: async () => undefined,
      ...accounts,
    },
    allowed: { isStillAllowed: async () => stillAllowed },
    installations,
    codeHost: codeHostFor({ kind: "github", url: "https://github.com", api_url: undefined }),
    address: new OwnAddress("http://svc.example"),
    clock: systemClock,
    logger: silentLogger,
  });
  return { check, used };
}

async function forwarded(
  given: Given,
  form: "git" | "api" = "api",
): Promise<{ admission: Admission; used: string[] }> {
  const { check, used } = checkOf(given);
  const kind = given.record?.type === "agent" ? "agent" : "proxy";
  const caller = await check.authenticate(`Bearer ${createToken(kind).reveal()}`, "10.0.0.1");
  assert.equal(caller.kind, "caller");
  const admission = caller.kind === "caller" ? await caller.forward(form) : caller;
  return { admission, used };
}
function authorization(admission: Admission): string | undefined {
  return admission.kind === "forward" ? admission.authorization : `${admission.status} ${admission.message}`;
}

describe("the credential behind a token", () => {
  it("a proxy token's is its user's, in the form of git or of the API", async () => {
    assert.equal(authorization((await forwarded({})).admission), "Bearer ghu_stored");
    assert.equal(
      authorization((await forwarded({}, "git")).admission),
      `Basic ${btoa("x-access-token:ghu_stored")}`,
    );
  });

  it("an agent token's is its installation's", async () => {
    const outcome = { kind: "token", token: new Secret("ghs_installation"), expiresAt: 1 } as const;
    const { admission, used } = await forwarded({ record: { type: "agent" }, outcome });
    assert.equal(authorization(admission), "Bearer ghs_installation");
    assert.deepEqual(used, ["t1"]);
  });

  it("a proxy token of a user without access is refused; an agent token is not", async () => {
    const accounts = { accessToken: async () => assert.fail("its credential was used") };
    const { check } = checkOf({ stillAllowed: false, accounts });
    const refused = await check.authenticate(`Bearer ${createToken("proxy").reveal()}`, "10.0.0.1");
    assert.equal(refused.kind === "refuse" ? refused.status : 0, 403);
    const outcome = { kind: "token", token: new Secret("ghs_installation"), expiresAt: 1 } as const;
    const agent = await forwarded({ record: { type: "agent" }, outcome, stillAllowed: false });
    assert.equal(authorization(agent.admission), "Bearer ghs_installation");
  });

  it("an agent token without an installation token is refused, and no use is counted", async () => {
    const rows: [InstallationOutcome | undefined, RegExp][] = [
      [undefined, /^403 Agent tokens need a registered app/],
      [{ kind: "refused", message: "The app lacks issues:write" }, /^403 The app lacks issues:write/],
      [{ kind: "unavailable", message: "The code host does not answer" }, /^503 The code host/],
    ];
    for (const [outcome, expected] of rows) {
      const given: Given = { record: { type: "agent" }, ...(outcome === undefined ? {} : { outcome }) };
      const { admission, used } = await forwarded(given);
      assert.match(authorization(admission) ?? "", expected);
      assert.deepEqual(used, []);
    }
  });

  it("without a connected account requests are anonymous; a 401 says where to connect", async () => {
    const { admission } = await forwarded({ accounts: { accessToken: async () => undefined } });
    assert.equal(authorization(admission), undefined);
    assert.match(admission.kind === "forward" ? (admission.whenUnauthorized ?? "") : "", /svc\.example\/ui/);
  });

  it("renew gives the new credential in the same form, and nothing if that fails", async () => {
    const good = await forwarded(
      { accounts: { renewAfterRefusal: async () => new Secret("ghu_new") } },
      "git",
    );
    const bad = await forwarded({
      accounts: { renewAfterRefusal: async () => Promise.reject(new Error("down")) },
    });
    const renew = async (admission: Admission): Promise<string | undefined> =>
      admission.kind === "forward" ? admission.renew?.() : "refused";
    assert.equal(await renew(good.admission), `Basic ${btoa("x-access-token:ghu_new")}`);
    assert.equal(await renew(bad.admission), undefined);
  });

  it("a store that does not answer is 503", async () => {
    const { admission } = await forwarded({
      accounts: { accessToken: async () => Promise.reject(new Error("away")) },
    });
    assert.match(authorization(admission) ?? "", /^503 /);
  });
});

describe("demands", () => {
  const rows: [name: string, required: RequiredPermissions | undefined, expected: RegExp | undefined][] = [
    ["held", { needs: [{ resource: "issues", level: "read" }], repositories: ["Acme/Widgets"] }, undefined],
    ["held for both repositories", { needs: [], repositories: ["acme/widgets", "acme/tools"] }, undefined],
    ["one of two repositories", { needs: [], repositories: ["acme/widgets", "acme/x"] }, /not for acme\/x/],
    [
      "several scopes, all of them named",
      {
        needs: [
          { resource: "contents", level: "write" },
          { resource: "checks", level: "read" },
        ],
        repositories: ["acme/tools"],
      },
      /lacks the scope contents:write and checks:read for acme\/tools/,
    ],
    ["no repository", { needs: [], repositories: [] }, /single repositories/],
    ["no repository, for anyone", { needs: [], repositories: [], anyRepository: true }, undefined],
    ["a name that is none", { needs: [], repositories: ["acme/widgets/x"] }, /such a name/],
    ["a name with other letters", { needs: [], repositories: ["\u212acme/widgets"] }, /such a name/],
    ["a pattern", { needs: [], repositories: ["acme/*"] }, /such a name/],
    ["nothing that is understood", undefined, /do not open this address/],
  ];
  for (const [name, required, expected] of rows) {
    it(`${name} is ${expected === undefined ? "allowed" : "refused"}`, async () => {
      const { check } = checkOf({});
      const caller = await check.authenticate(`Bearer ${createToken("proxy").reveal()}`, "10.0.0.1");
      const refusal = caller.kind === "caller" ? caller.permits(required) : caller;
      if (expected === undefined) assert.equal(refusal, undefined);
      else assert.match(`${refusal?.status} ${refusal?.message}`, expected);
    });
  }

  it("unknown requests need a token for everything, not one for every repository", async () => {
    const permits = async (record: Partial<TokenRecord>): Promise<boolean> => {
      const caller = await checkOf({ record }).check.authenticate(
        `Bearer ${createToken("proxy").reveal()}`,
        "10.0.0.1",
      );
      return caller.kind === "caller" && caller.permits(undefined) === undefined;
    };
    assert.equal(await permits({ repositories: ["*"], scopes: { "*": "write" } }), true);
    assert.equal(await permits({ repositories: ["*"] }), false);
    assert.equal(await permits({ scopes: { "*": "write" } }), false);
  });
});
