import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { OpensshRegress, type LeftOut } from "./openssh-regress-stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 1_200_000;

/** Parts of agent.sh that have no counterpart: keys belong to the store, so `ssh-add` cannot add or remove a single one. */
const AGENT: readonly LeftOut[] = [
  {
    from: "# delete the ed25519 key",
    to: 'trace "kill agent"',
    reason:
      "certificates come from the store's CA and not from files, and a key of the store is not removed by ssh-add -d",
  },
];

/** Parts of agent-restrict.sh that `hosts` and `via` do not express: user names. */
const RESTRICT: readonly LeftOut[] = [
  {
    from: 'verbose "username incorrect"',
    to: 'verbose "agent restriction honours certificate principal"',
    reason: "'hosts' has no user names",
  },
  {
    from: 'verbose "multihop wrong username"',
    to: 'verbose "multihop cycle no agent"',
    reason: "'hosts' has no user names",
  },
];

describe("OpenSSH's own tests of agents", { timeout: TIMEOUT_MS }, () => {
  let regress: OpensshRegress;
  before(async () => {
    regress = await OpensshRegress.start();
  });
  after(() => regress.stop());

  const cases: readonly (readonly [string, readonly LeftOut[], NodeJS.ProcessEnv?])[] = [
    ["agent.sh", AGENT],
    ["agent-restrict.sh", RESTRICT],
    ["agent-getpeereid.sh", [], { REGRESS_USER: "somebody", SUDO: "sudo" }],
  ];
  for (const [script, leftOut, env] of cases) {
    it(`${script} passes`, async () => {
      const { code, stdout, stderr } = await regress.run(script, leftOut, env);
      assert.equal(code, 0, `${stdout}\n${stderr}`);
      assert.match(stdout, /^ok /m);
      assert.doesNotMatch(stdout, /SKIPPED/);
    });
  }
});
