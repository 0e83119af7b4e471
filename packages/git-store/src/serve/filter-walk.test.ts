import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import {
  decodeFetchRequest,
  encodeCommandRequest,
  FetchResponseWalker,
  type CommandRequest,
} from "@devplat/git-protocol";
import { git, temporaryFolder } from "../../test/git.test-kit.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import { Repository } from "../repository/repository.ts";
import { uploadPackV2Fetch } from "./upload-pack.ts";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let repository: Repository;
let index: ReachabilityIndex;

/** Two commits with one folder: deep in the newer one, which git walks first, and near the root of the older one. */
const HISTORY = `commit refs/heads/main
committer A <a@example.com> 1700000000 +0000
data 3
one
M 100644 inline folder/inner/file
data 4
text
M 100644 inline other
data 5
other

commit refs/heads/main
committer A <a@example.com> 1700000060 +0000
data 3
two
D folder
M 100644 inline deep/down/folder/inner/file
data 4
text
M 100644 inline deep/large
data 12
0123456789ab

`;

before(async () => {
  folder = temporaryFolder();
  path = `${folder.path}/repository.git`;
  git(folder.path, ["init", "-q", "--bare", "-b", "main", path]);
  git(path, ["fast-import", "--quiet"], HISTORY);
  git(path, ["config", "uploadpack.allowFilter", "true"]);
  git(path, ["config", "uploadpack.allowAnySHA1InWant", "true"]);
  git(path, ["repack", "-q", "-a", "-d"]);
  repository = await Repository.open(path);
  index = ReachabilityIndex.open(repository.objects);
});
after(() => {
  index.close();
  repository.close();
  folder[Symbol.dispose]();
});

/** Objects of a response, as git reads its pack. */
function objectsOf(response: Buffer): string[] {
  const parts: Buffer[] = [];
  new FetchResponseWalker({ pack: (bytes) => parts.push(Buffer.from(bytes)) }).push(response);
  using scratch = temporaryFolder();
  git(scratch.path, ["init", "-q", "--bare", "."]);
  git(scratch.path, ["index-pack", "--stdin"], Buffer.concat(parts));
  return git(scratch.path, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"])
    .toString()
    .trim()
    .split("\n");
}

async function ours(request: CommandRequest): Promise<string[]> {
  const graph = index.acquire();
  try {
    const chunks: Buffer[] = [];
    const refs = await repository.refs();
    for await (const chunk of uploadPackV2Fetch(graph, decodeFetchRequest(request, "sha1"), { refs })) {
      chunks.push(Buffer.from(chunk));
    }
    return objectsOf(Buffer.concat(chunks));
  } finally {
    graph.release();
  }
}

function gits(request: CommandRequest): string[] {
  const { status, stdout, stderr } = spawnSync("git", ["upload-pack", "--stateless-rpc", path], {
    input: encodeCommandRequest(request),
    env: { ...process.env, GIT_PROTOCOL: "version=2" },
  });
  assert.equal(status, 0, stderr.toString());
  return objectsOf(stdout);
}

for (const filter of [
  "combine:blob:none+tree:3",
  "combine:tree:3+blob:none",
  "combine:tree:2+blob:limit=8",
  "combine:combine:blob:limit%3D8%2Btree:3+object:type=tree",
  "combine:tree:1+tree:3",
  "combine:object:type=commit+tree:3",
  "combine:object:type=tree+blob:none",
  "tree:1",
  "tree:2",
  "tree:3",
  "tree:4",
]) {
  test(`filter ${filter} selects the objects that git upload-pack selects [svc 2.24]`, async () => {
    const want = git(path, ["rev-parse", "main"]).toString().trim();
    const tree = git(path, ["rev-parse", "main:deep/down"]).toString().trim();
    const rootTree = git(path, ["rev-parse", "main~1^{tree}"]).toString().trim();
    for (const wants of [[want], [want, tree], [tree], [want, rootTree], [rootTree, want], [rootTree]]) {
      const args = [...wants.map((oid) => `want ${oid}`), `filter ${filter}`, "no-progress", "done"];
      const request = { command: "fetch", capabilities: ["object-format=sha1"], args };
      // Objects that are wanted by their id are always sent. Git without bitmaps omits some of them.
      const isWanted = (line: string): boolean => wants.some((oid) => line.startsWith(oid));
      const [sent, expected] = [await ours(request), gits(request)];
      assert.deepEqual(
        sent.filter((line) => !isWanted(line)),
        expected.filter((line) => !isWanted(line)),
        wants.join(" "),
      );
      for (const oid of wants)
        assert.ok(
          sent.some((line) => line.startsWith(oid)),
          `${oid} is sent`,
        );
    }
  });
}
