import assert from "node:assert/strict";
import type { LeftOut, OpensshRegress } from "./openssh-regress-stand.ts";

const CERTIFICATES = "certificates come from the store's CA and not from files";
/** Parts of agent.sh that have no counterpart. */
const AGENT: readonly LeftOut[] = [
  {
    from: "check_key_present ssh-ed25519-cert-v01@openssh.com",
    to: "# Put key/cert back.",
    reason: CERTIFICATES,
  },
  { from: "# Delete certificate via stdin", to: "# Delete key via stdin", reason: CERTIFICATES },
];

const OWN_CHECKS = "what it checks is checked with fewer logins by another part; the long run has it";
/** Parts of agent-restrict.sh that take most of its time. */
const RESTRICT_LONG: readonly LeftOut[] = [
  {
    from: 'verbose "authentication w/o agent"',
    to: 'verbose "start agent"',
    reason: "it uses no SSH agent; the long run has it",
  },
  { from: 'verbose "username wildcard"', to: 'verbose "username incorrect"', reason: OWN_CHECKS },
  {
    from: 'verbose "multihop without agent"',
    to: 'verbose "multihop restricted"',
    reason: "no key of the SSH agent is restricted; the long run has it",
  },
  {
    from: 'verbose "multihop username"',
    to: 'verbose "multihop wrong username"',
    reason: OWN_CHECKS,
  },
  {
    from: 'verbose "multihop cycle no agent"',
    to: 'verbose "multihop cycle restricted allow"',
    reason: OWN_CHECKS,
  },
];

const SCRIPTS = {
  "agent.sh": { leftOut: AGENT, env: {} },
  "agent-restrict.sh": { leftOut: RESTRICT_LONG, env: {} },
  "agent-restrict.sh, whole": { leftOut: [], env: {} },
  "agent-getpeereid.sh": { leftOut: [], env: { REGRESS_USER: "somebody", SUDO: "sudo" } },
} as const satisfies Readonly<
  Record<string, { readonly leftOut: readonly LeftOut[]; readonly env: NodeJS.ProcessEnv }>
>;

/** Runs a script of OpenSSH, which must pass and skip nothing. */
export async function assertPasses(regress: OpensshRegress, name: keyof typeof SCRIPTS): Promise<void> {
  const { leftOut, env } = SCRIPTS[name];
  const { code, stdout, stderr } = await regress.run(name.replace(/,.*/, ""), leftOut, env);
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /^ok /m);
  assert.doesNotMatch(stdout, /SKIPPED/);
}
