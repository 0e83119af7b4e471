import assert from "node:assert/strict";
import { userInfo } from "node:os";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { startSshd, type Finished, type Sshd } from "@devplat/testkit";
import type { KeyRestrictions } from "../identity.ts";
import { MemorySource, identityOf, keyAt, startSshAgent, type TestSshAgent } from "./ssh-agent.test-kit.ts";

/** Three servers, and a client whose SSH agent is forwarded from one to the next. */
interface Chain {
  readonly hosts: readonly [Sshd, Sshd, Sshd];
  readonly test: TestSshAgent;
  /** Name of a host in known_hosts. */
  readonly place: (at: number) => string;
  /** Has the key for all hosts these restrictions. */
  readonly restrict: (restrictions: Partial<KeyRestrictions>) => Promise<void>;
  /** Logs in to host 0, from there to host 1, and so on, and runs a command on the last one. */
  readonly through: (
    hosts: readonly number[],
    command: string,
    forwardTheLast?: boolean,
  ) => Promise<Finished>;
}

async function startChain(): Promise<Chain & AsyncDisposable> {
  const hosts = [await startSshd(), await startSshd(), await startSshd()] as const;
  const source = new MemorySource("own", []);
  const test = await startSshAgent({ sources: [source] });
  const place = (at: number): string => `[127.0.0.1]:${hosts[at]?.port}`;
  await test.know(...hosts.map(({ hostKey }, at) => `${place(at)} ${hostKey}`));
  // All accounts are this user's own, and know all hosts.
  const configuration = join(test.folder, "ssh.conf");
  const blocks = hosts.map(
    ({ port }, at) => `Host host${at}\n  HostName 127.0.0.1\n  Port ${port}\n  User ${userInfo().username}\n`,
  );
  await writeFile(
    configuration,
    `${blocks.join("")}Host *\n  BatchMode yes\n  StrictHostKeyChecking yes\n  IdentityFile none\n  UserKnownHostsFile ${join(test.folder, "known_hosts")}\n`,
  );
  return {
    hosts,
    test,
    place,
    through: (way, command, forwardTheLast = false) => {
      const words = way.reduceRight((inner, at, index) => {
        const forward = index < way.length - 1 || forwardTheLast ? "-A" : "-a";
        return `ssh ${forward} -F ${configuration} host${at} ${quoted(inner)}`;
      }, command);
      return test.run("sh", ["-c", words]);
    },
    restrict: async (restrictions) => {
      source.keys = await Promise.all(
        hosts.map(async ({ userKey }, at) =>
          identityOf(await keyAt(userKey), `key ${at}`, at === 2 ? restrictions : {}),
        ),
      );
      source.change();
    },
    async [Symbol.asyncDispose]() {
      await test[Symbol.asyncDispose]();
      await Promise.all(hosts.map((each) => each.stop()));
    },
  };
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

describe("an SSH agent that is forwarded through three hosts", () => {
  let chain: Awaited<ReturnType<typeof startChain>>;
  before(async () => {
    chain = await startChain();
  });
  beforeEach(() => chain.restrict({}));
  after(() => chain[Symbol.asyncDispose]());

  it("a key for a host behind two others is used on exactly that way", async () => {
    const { test, place, restrict, through } = chain;
    const reaches = async (hosts: readonly number[]): Promise<boolean> =>
      (await through(hosts, "echo reached")).stdout === "reached\n";
    assert.equal(await reaches([0, 1, 2]), true, "without a restriction");
    const hosts = [place(2)];
    await restrict({ hosts, via: [place(0), place(1)] });
    assert.equal(await reaches([0, 1, 2]), true, "the way of the key");
    const last = test.log.findLast(({ message }) => message === "SSH signature made");
    assert.equal(last?.fields["destination"], place(2));
    assert.equal(last?.fields["forwarded"], true);
    assert.deepEqual(last?.fields["through"], [place(0), place(1)]);
    assert.equal(await reaches([2]), false, "direct");
    assert.equal(await reaches([0, 2]), false, "one host less");
    assert.equal(await reaches([1, 0, 2]), false, "another order");
    await restrict({ hosts, via: [] });
    assert.equal(await reaches([2]), true, "direct only, direct");
    assert.equal(await reaches([0, 2]), false, "direct only, through a host");
    await restrict({ hosts: [place(1)] });
    assert.equal(await reaches([0, 1, 2]), false, "a key for another host");
  });

  it("a key for a user of a host logs in as that user only", async () => {
    const { test, place, restrict, through } = chain;
    const me = userInfo().username;
    const login = async (): Promise<string> => (await through([0, 2], "echo reached")).stdout;
    await restrict({ hosts: [`${me}@${place(2)}`], via: [place(0)] });
    assert.equal(await login(), "reached\n");
    await restrict({ hosts: [`${me}2@${place(2)}`, `${me}@${place(1)}`] });
    assert.equal(await login(), "");
    const reason = `the key is not for the user "${me}" of this host`;
    assert.equal(test.agent.status().refusals[0]?.reason, reason);
    await restrict({ hosts: ["*", `!${me}@${place(2)}`] });
    assert.equal(await login(), "");
    assert.equal(test.agent.status().refusals[0]?.reason, reason);
  });

  it("ssh-add on a host lists what can be used further, and changes nothing here", async () => {
    const { test, place, restrict, through } = chain;
    const listedOn = async (...way: number[]): Promise<string> =>
      (await through(way, "ssh-add -l", true)).stdout;
    await restrict({ hosts: [place(2)], via: [place(0), place(1)] });
    assert.match(await listedOn(0), /key 2/);
    assert.match(await listedOn(0, 1), /key 2/);
    assert.doesNotMatch(await listedOn(1), /key 2/);
    assert.match(await listedOn(1), /key 1/);
    await through([0], "ssh-add -D", true);
    assert.match((await test.run("ssh-add", ["-l"])).stdout, /key 1/);
    const askpass = join(test.folder, "askpass");
    await writeFile(askpass, "#!/bin/sh\necho secret\n", { mode: 0o700 });
    await through([0], `SSH_ASKPASS_REQUIRE=force SSH_ASKPASS=${askpass} ssh-add -x`, true);
    assert.equal(test.agent.status().locked, false);
  });

  it("confirmation of forwarded use asks with the hosts on the way", async () => {
    const { test, place, through } = chain;
    const { settings } = test;
    test.settings = { ...settings, confirm: "forwarded" };
    assert.equal((await through([0], "true")).code, 0);
    assert.equal(test.questions.asked.length, 0);
    assert.equal((await through([0, 1], "true")).code, 0);
    const facts = test.questions.asked[0]?.facts ?? [];
    assert.deepEqual(facts.slice(0, 2), [
      { text: `Log in as ${userInfo().username} to ${place(1)}`, verified: true },
      { text: `Through a forwarded agent: ${place(0)}`, verified: true },
    ]);
    assert.match(facts[2]?.text ?? "", /^By ssh \(\d+\), started by /);
    test.questions.answerWith = async () => false;
    assert.equal((await through([0, 2], "true")).code, 255);
    assert.equal(test.agent.status().refusals[0]?.reason, "the user has not confirmed the signature");
    test.settings = settings;
  });

  it("a remote signature needs the namespace of the key", async () => {
    const { hosts, test, place, restrict, through } = chain;
    // The public half alone: ssh-keygen would use a private half next to it.
    const publicKey = join(test.folder, "signer.pub");
    await copyFile(`${hosts[2].userKey}.pub`, publicKey);
    const sign = (namespace: string): Promise<Finished> =>
      through([0], `echo text | ssh-keygen -Y sign -n ${namespace} -f ${publicKey}`, true);
    await restrict({ hosts: [place(0)], namespaces: ["git"] });
    const signed = await sign("git");
    assert.equal(signed.code, 0, signed.stderr);
    assert.match(signed.stdout, /BEGIN SSH SIGNATURE/);
    assert.notEqual((await sign("file")).code, 0);
    await restrict({ hosts: [place(1)], namespaces: ["git"] });
    assert.notEqual((await sign("git")).code, 0);
    await restrict({ hosts: [place(0)] });
    assert.notEqual((await sign("git")).code, 0);
  });
});
