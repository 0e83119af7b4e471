import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import type { ObservedRequest } from "./observed-request.ts";
import { ACTIVITY_MINUTES, Activity } from "./activity.ts";

const MINUTE_MS = 60_000;

function started(): { readonly activity: Activity; readonly pass: (minutes: number) => void } {
  let now = 1000 * MINUTE_MS;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async () => undefined,
  };
  return { activity: new Activity(clock), pass: (minutes) => void (now += minutes * MINUTE_MS) };
}

/** A request that is over, as far as it is looked at. */
function over(
  facts: {
    readonly tail?: string;
    readonly repository?: string;
    readonly cacheState?: string;
    readonly command?: string;
    readonly probe?: boolean;
    readonly status?: number;
    readonly answered?: boolean;
    readonly ms?: number;
    readonly tokenId?: string;
  } = {},
): ObservedRequest {
  const context = {
    subject: { tail: facts.tail ?? "upload_pack", repository: facts.repository ?? "acme/widgets" },
    cacheState: facts.cacheState ?? "",
    gitCommand: facts.command ?? "fetch",
    gitProbe: facts.probe ?? false,
    response: { headersSent: facts.answered ?? true, statusCode: facts.status ?? 200 },
    principal: { kind: "proxy_token", login: "ada", tokenId: facts.tokenId },
    startedAt: performance.now() - (facts.ms ?? 1),
    bytes: 10,
  };
  return context as unknown as ObservedRequest;
}

describe("activity", () => {
  it("counts one clone once, by its fetch", () => {
    const { activity } = started();
    activity.request(over({ tail: "info_refs", command: "" }));
    activity.request(over({ command: "ls-refs" }));
    activity.request(over({ probe: true }));
    activity.request(over({ cacheState: "hit" }));
    assert.deepEqual(activity.snapshot().minutes.at(-1), { hit: 1, miss: 0, passed: 0, failed: 0 });
  });

  it("counts a clone once for which there is no seed", () => {
    const { activity } = started();
    for (const tail of ["seed", "seed_file"])
      activity.request(over({ tail, command: "", cacheState: "miss" }));
    activity.request(over({ cacheState: "miss" }));
    assert.deepEqual(activity.snapshot().minutes.at(-1), { hit: 0, miss: 1, passed: 0, failed: 0 });
  });

  const kinds: [name: string, context: ObservedRequest, kind: string][] = [
    ["a miss", over({ cacheState: "miss" }), "miss"],
    ["a seed that is sent", over({ tail: "seed_file", command: "", cacheState: "hit" }), "hit"],
    ["a seed that is refused", over({ tail: "seed", command: "", cacheState: "rejected" }), "failed"],
    ["a fetch that passes through", over({ cacheState: "passthrough" }), "passed"],
    ["a repository that is not listed", over(), "passed"],
    ["a push", over({ tail: "receive_pack", command: "" }), "passed"],
    ["an answer of the API that says no", over({ tail: "api", command: "", status: 404 }), "passed"],
    ["an ls-refs that was refused", over({ command: "ls-refs", cacheState: "rejected" }), "failed"],
    ["an error of the cache", over({ cacheState: "error" }), "failed"],
    ["a code host that is away", over({ tail: "api", command: "", status: 502 }), "failed"],
    ["no answer at all", over({ tail: "api", command: "", answered: false }), "failed"],
  ];
  for (const [name, context, kind] of kinds) {
    it(`counts ${name} as ${kind}`, () => {
      const { activity } = started();
      activity.request(context);
      const counts = { hit: 0, miss: 0, passed: 0, failed: 0, [kind]: 1 };
      assert.deepEqual(activity.snapshot().minutes.at(-1), counts);
    });
  }

  it("leaves out what is for the service itself", () => {
    const { activity } = started();
    activity.request(Object.assign(over(), { subject: undefined }));
    assert.deepEqual(activity.snapshot().minutes.at(-1), { hit: 0, miss: 0, passed: 0, failed: 0 });
  });

  it("looks back an hour, minute by minute, and forgets what is before", () => {
    const { activity, pass } = started();
    activity.request(over({ cacheState: "hit", tokenId: "old" }));
    pass(ACTIVITY_MINUTES - 1);
    activity.request(over({ cacheState: "miss", tokenId: "new" }));
    const { minutes, tokensInUse, slowest } = activity.snapshot();
    assert.equal(minutes.length, ACTIVITY_MINUTES);
    assert.equal(minutes[0]?.hit, 1);
    assert.equal(minutes.at(-1)?.miss, 1);
    assert.equal(tokensInUse, 2);
    assert.equal(slowest.length, 2);
    pass(1);
    const later = activity.snapshot();
    assert.equal(
      later.minutes.reduce((sum, each) => sum + each.hit + each.miss, 0),
      1,
    );
    assert.equal(later.tokensInUse, 1);
    assert.equal(later.slowest.length, 1);
  });

  it("keeps the slowest fetches, the slowest first, and no pushes", () => {
    const { activity, pass } = started();
    for (let index = 0; index < 50; index++) {
      activity.request(over({ repository: `acme/r${index}`, ms: 1000 + index * 1000 }));
      if (index % 10 === 0) pass(1);
    }
    activity.request(over({ tail: "receive_pack", command: "", ms: 10 ** 6 }));
    assert.deepEqual(
      activity.snapshot().slowest.map(({ repository }) => repository),
      ["acme/r49", "acme/r48", "acme/r47", "acme/r46", "acme/r45"],
    );
  });

  it("keeps the last denials, the newest first, and nothing that was allowed", () => {
    const { activity } = started();
    const event = { action: "access.denied", actor: { kind: "foreign" } } as const;
    activity.audited({ ...event, outcome: "allowed", target: "no" });
    for (let index = 0; index < 9; index++) {
      activity.audited({ ...event, outcome: "denied", target: String(index) });
    }
    assert.deepEqual(
      activity.snapshot().denials.map((denial) => denial.event.target),
      ["8", "7", "6", "5", "4"],
    );
  });
});
