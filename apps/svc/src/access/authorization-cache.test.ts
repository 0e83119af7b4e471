import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AuthorizationCache, authorizationKey } from "./authorization-cache.ts";
import { ManualClock } from "./manual-clock.test-kit.ts";
import { repositoryId } from "./repository-id.ts";

describe("AuthorizationCache", () => {
  const key = authorizationKey("Basic x", "https://h", repositoryId("o", "r"));

  it("keys differ by credential, code host and repository, not by case of the name [svc 1.8]", () => {
    const keys = [
      key,
      authorizationKey(undefined, "https://h", repositoryId("o", "r")),
      authorizationKey("Basic y", "https://h", repositoryId("o", "r")),
      authorizationKey("Basic x", "https://i", repositoryId("o", "r")),
      authorizationKey("Basic x", "https://h", repositoryId("o", "s")),
    ];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(authorizationKey("Basic x", "https://h", repositoryId("O", "R")), key);
    // U+212A, the Kelvin sign, is not a k.
    assert.notEqual(
      authorizationKey("Basic x", "https://h", repositoryId("\u212a", "r")),
      authorizationKey("Basic x", "https://h", repositoryId("k", "r")),
    );
    assert.doesNotMatch(keys.join(), /Basic/);
  });

  it("counts for its seconds from when the request was sent [svc 1.9]", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(30, clock);
    const sentAt = authorizations.now();
    clock.ms += 10_000;
    authorizations.record(key, sentAt);
    clock.ms += 19_999;
    assert.notEqual(authorizations.find(key), undefined);
    clock.ms += 1;
    assert.equal(authorizations.find(key), undefined);
  });

  it("a refusal deletes an authorization, also one whose request was sent before it", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(30, clock);
    const sentAt = authorizations.now();
    authorizations.refuse(key);
    authorizations.record(key, sentAt);
    assert.equal(authorizations.find(key), undefined);
    clock.ms += 1;
    authorizations.record(key, authorizations.now());
    assert.notEqual(authorizations.find(key), undefined);
  });

  it("a probe renews an authorization within ten minutes, and none that was deleted", () => {
    const clock = new ManualClock();
    const authorizations = new AuthorizationCache(5, clock);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
    authorizations.record(key, authorizations.now());
    clock.ms += 600_000;
    assert.equal(authorizations.find(key), undefined);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), clock.ms);
    clock.ms += 600_001;
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
    authorizations.record(key, authorizations.now());
    authorizations.forget(key);
    authorizations.renew(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
  });

  it("with 0 seconds nothing is remembered", () => {
    const authorizations = new AuthorizationCache(0, new ManualClock());
    authorizations.record(key, authorizations.now());
    assert.equal(authorizations.find(key), undefined);
  });
});
