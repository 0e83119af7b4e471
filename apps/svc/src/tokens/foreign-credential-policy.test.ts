import type { Principal } from "../identity/principal.ts";
import type { GitAction } from "../scopes/required-permissions.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Admission, Caller, CredentialCheck } from "./admission.ts";
import { permissionText } from "../scopes/token-limits.ts";
import { ForeignCredentialPolicy, type ForeignCredentialRules } from "./foreign-credential-policy.ts";

const OPEN: ForeignCredentialRules = { blockTokenPrefixes: [], blockAnonymousGit: false, allowedOwners: [] };
const READ: GitAction = { owner: "Acme", name: "widgets", resource: "contents", level: "read" };

/** Takes every caller; `svcx_` is a token of this service. */
const inner: Pick<CredentialCheck, "authenticate"> = {
  authenticate: async (authorization): Promise<Caller> => ({
    kind: "caller",
    principal: principalOf(authorization),
    limits:
      authorization?.includes("svcx_") === true
        ? { repositories: ["*"], scopes: { "*": "write" } }
        : undefined,
    permits: () => undefined,
    forward: async () => admission(authorization),
  }),
};
function principalOf(authorization: string | undefined): Principal {
  const kind =
    authorization === undefined ? "anonymous" : authorization.includes("svcx_") ? "proxy_token" : "foreign";
  return { kind, login: undefined, tokenId: undefined };
}
function admission(authorization: string | undefined): Admission {
  return { kind: "forward", authorization, principal: principalOf(authorization) };
}
async function git(
  policy: Partial<ForeignCredentialRules>,
  authorization: string | undefined,
  action: GitAction | undefined = READ,
) {
  const found = await new ForeignCredentialPolicy(inner, { ...OPEN, ...policy }, () => false).admit(
    authorization,
    action,
    "10.0.0.1",
  );
  return found.kind === "forward" ? 200 : found.status;
}

describe("foreign credential policy", () => {
  it("border.block_token_prefixes refuses foreign credentials in every form", async () => {
    const policy = { blockTokenPrefixes: ["ghp_", "github_pat_"] };
    for (const refused of [
      "Bearer ghp_x",
      "token github_pat_x",
      `Basic ${btoa("x:ghp_x")}`,
      `Basic ${btoa("ghp_x:")}`,
      "ghp_x",
      "Bearer other, token=ghp_x",
      'Bearer "ghp_x"',
      `Digest ${btoa("x ghp_xyz")}`,
    ]) {
      assert.equal(await git(policy, refused), 403, refused);
    }
    assert.equal(await git(policy, "Bearer gho_x"), 200);
    assert.equal(await git(policy, "Bearer svcx_x"), 200);
    assert.equal(await git(policy, undefined), 200);
  });

  it("border.block_token_prefixes covers other headers, but not words of a sentence", () => {
    const check = new ForeignCredentialPolicy(inner, { ...OPEN, blockTokenPrefixes: ["ghp_"] }, () => false);
    for (const value of ["ghp_x", " ghp_x", "token ghp_x", `Basic ${btoa("ghp_x:x-oauth-basic")}`]) {
      assert.equal(check.foreignCredentialRefusal(() => ["1", value])?.status, 403, value);
    }
    assert.equal(
      check.foreignCredentialRefusal(() => ["is:open find ghp_ tokens", "svc-client (ghp_)"]),
      undefined,
    );
    assert.equal(
      new ForeignCredentialPolicy(inner, OPEN, () => false).foreignCredentialRefusal(() => ["ghp_x"]),
      undefined,
    );
  });

  it("border.block_anonymous_git asks git for a credential", async () => {
    for (const nothing of ["", "Bearer", "Bearer ", "Basic Og==", "Basic", "Anything else", "Negotiate x"]) {
      assert.equal(await git({ blockAnonymousGit: true }, nothing), 401, nothing);
    }
    assert.equal(await git({ blockAnonymousGit: true }, undefined), 401);
    assert.equal(await git({ blockAnonymousGit: true }, "Bearer x"), 200);
  });

  it("border.allowed_owners limits foreign credentials and anonymous requests", async () => {
    const policy = { allowedOwners: ["acme"] };
    for (const authorization of ["Bearer x", undefined]) {
      assert.equal(await git(policy, authorization), 200);
      assert.equal(await git(policy, authorization, { ...READ, owner: "other" }), 403);
      assert.equal(await git(policy, authorization, { ...READ, owner: "acmeextra" }), 403);
      const unknown = await new ForeignCredentialPolicy(inner, { ...OPEN, ...policy }, () => false).admit(
        authorization,
        undefined,
        "10.0.0.1",
      );
      assert.equal(unknown.kind, "refuse");
    }
    assert.equal(await git(policy, "Bearer svcx_x", { ...READ, owner: "other" }), 200);
  });

  it("tokens.push_needs_workflows: a push asks for workflows:write, a fetch does not [svc 8.14]", async () => {
    const asked: string[] = [];
    const limited: typeof inner = {
      ...inner,
      authenticate: async (authorization) => ({
        kind: "caller",
        principal: principalOf(authorization),
        limits: { repositories: ["*"], scopes: { contents: "write" } },
        permits: (required) => {
          asked.push(required?.needs.map(permissionText).join("+") ?? "");
          return undefined;
        },
        forward: async () => admission(authorization),
      }),
    };
    let needed = true;
    const check = new ForeignCredentialPolicy(limited, OPEN, () => needed);
    await check.admit("Bearer svcx_x", { ...READ, level: "write" }, "10.0.0.1");
    await check.admit("Bearer svcx_x", READ, "10.0.0.1");
    needed = false;
    await check.admit("Bearer svcx_x", { ...READ, level: "write" }, "10.0.0.1");
    assert.deepEqual(asked, ["contents:write+workflows:write", "contents:read", "contents:write"]);
  });

  it("without a policy nothing changes", async () => {
    assert.equal(await git({}, undefined, { ...READ, owner: "any" }), 200);
  });

  it("tokens.requests_per_minute: a git request is authenticated once", async () => {
    let looks = 0;
    const counting: typeof inner = {
      ...inner,
      authenticate: async (...from) => {
        looks++;
        return inner.authenticate(...from);
      },
    };
    await new ForeignCredentialPolicy(counting, OPEN, () => false).admit("Bearer svcx_x", READ, "10.0.0.1");
    assert.equal(looks, 1);
  });
});
