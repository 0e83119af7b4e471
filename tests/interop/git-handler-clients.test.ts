/** The handler of git-store as a server of `node:http`, and git clients of all makes: clone, then fetch after a push. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { Repository } from "@devplat/git-store";
import { createGitHandler, toNodeListener } from "@devplat/git-store/http";
import {
  clientPrograms,
  git,
  gitEnvironment,
  repositories,
  run,
  tempFolder,
  type TempFolder,
} from "@devplat/testkit";

const ISOMORPHIC = resolve(import.meta.dirname, "clients/isomorphic-git.ts");
const BRANCHES = ["for-each-ref", "--format=%(objectname) %(refname:lstrip=-1)"];

const clients = {
  ...clientPrograms(),
  "isomorphic-git": {
    command: process.execPath,
    args: ["--disable-warning=ExperimentalWarning", ISOMORPHIC],
  },
};

describe("git handler", () => {
  let folder: TempFolder;
  let server: Server;
  let url: string;

  before(async () => {
    folder = await tempFolder("handler-clients");
    const handler = createGitHandler({
      repository: (path) => Repository.open(join(folder.path, `${path}.git`)),
    });
    server = createServer(toNodeListener(handler)).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  after(async () => {
    server.close();
    server.closeAllConnections();
    await folder.remove();
  });

  for (const [name, { command, args }] of Object.entries(clients)) {
    it(`serves a clone of ${name}, and its fetch after a push`, async () => {
      const bare = join(folder.path, `${name}.git`);
      await repositories.merges(bare);
      const copy = join(folder.path, `${name}-copy`);
      const work = async (verb: "clone" | "fetch"): Promise<void> => {
        const { code, stderr } = await run(command, [...args, verb, `${url}/${name}.git`, copy], {
          env: gitEnvironment(),
        });
        assert.equal(code, 0, stderr);
        const wanted = await git([...BRANCHES, "refs/heads"], { cwd: bare });
        const got = await git([...BRANCHES, "refs/remotes/origin"], { cwd: copy });
        for (const branch of wanted.trim().split("\n"))
          assert.ok(got.includes(branch), `${branch} is not in ${got}`);
        await git(["fsck", "--full", "--strict"], { cwd: copy });
      };
      await work("clone");
      await repositories.append(bare, { commits: 3 });
      await git(["-C", bare, "repack", "-adq"]);
      await work("fetch");
    });
  }
});
