import assert from "node:assert/strict";
import { it } from "node:test";
import { repositoryId } from "../../../access/repository-id.ts";
import { MaintainedRepositories } from "./maintained-repositories.ts";

it("MaintainedRepositories knows the last decision about each repository", async () => {
  const id = repositoryId("org", "one");
  let fence: number | undefined = 7;
  const maintained = new MaintainedRepositories({ mayMaintain: async () => fence });
  assert.equal(maintained.has(id), false);
  assert.equal(await maintained.mayMaintain(id), 7);
  assert.equal(maintained.has(id), true);
  assert.equal(maintained.has(repositoryId("org", "two")), false);
  fence = undefined;
  assert.equal(await maintained.mayMaintain(id), undefined);
  assert.equal(maintained.has(id), false);
  // 0 is the fencing number without a lease.
  fence = 0;
  await maintained.mayMaintain(id);
  assert.equal(maintained.has(id), true);
  maintained.forget(id);
  assert.equal(maintained.has(id), false);
});
