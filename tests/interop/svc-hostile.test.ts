import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const UPLOAD_PACK = {
  "git-protocol": "version=2",
  "content-type": "application/x-git-upload-pack-request",
};

/** Headers that tell two answers apart, or whether a refused request's body had come by then: the connection ends if not. */
const VARYING = ["date", "x-request-id", "content-length", "connection", "keep-alive"];

describe("hostile callers of svc", { timeout: 120_000 }, () => {
  let stand: AdminStand;
  before(async () => {
    stand = await startAdminStand();
    for (const name of ["widgets", "other"]) {
      await stand.call("POST", "/api/cached-repos", { owner: "acme", name });
    }
  });
  after(async () => stand.stop());

  /** A response without the parts that differ from request to request. */
  async function answerTo(
    path: string,
    token: string,
    body: string | undefined,
  ): Promise<readonly [status: number, headers: string, text: string]> {
    const answer = await fetch(stand.svc.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...UPLOAD_PACK, authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body }),
    });
    const headers = [...answer.headers].filter(([name]) => !VARYING.includes(name));
    return [answer.status, JSON.stringify(headers), await answer.text()];
  }

  it("a limited token does not learn which other repositories are listed or exist", async () => {
    const { token } = await stand.mint("acme/widgets", "contents:read");
    for (const [path, body] of [
      ["info/refs?service=git-upload-pack", undefined],
      ["git-upload-pack", "0014command=ls-refs\n0000"],
      ["git-upload-pack", "not well-formed"],
      ["git-receive-pack", "0000"],
      ["HEAD", undefined],
      ["archive/main.tar.gz", undefined],
      ["info/lfs/objects/batch", '{"operation":"download","objects":[]}'],
    ] as const) {
      const [listed, absent] = [
        await answerTo(`/acme/other.git/${path}`, token, body),
        await answerTo(`/acme/nowhere.git/${path}`, token, body),
      ];
      assert.equal(listed[0], 403, path);
      assert.deepEqual(
        listed.map((each) => String(each).replaceAll("acme/other", "acme/nowhere")),
        absent.map(String),
        path,
      );
    }
  });

  it("an LFS batch for another repository is refused before its body is read", async () => {
    const { token } = await stand.mint("acme/widgets", "contents:read");
    const status = await new Promise((resolve, reject) => {
      const outgoing = request(`${stand.svc.url}/acme/other.git/info/lfs/objects/batch`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/vnd.git-lfs+json",
          "content-length": 1_000_000,
        },
      });
      outgoing.on("error", reject);
      outgoing.on("response", (response) => {
        response.resume();
        resolve(response.statusCode);
        outgoing.destroy();
      });
      // The rest never comes.
      outgoing.write('{"operation":');
    });
    assert.equal(status, 403);
  });
});
