import type { TokenLimits } from "../scopes/required-permissions.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { parseApiPath } from "../scopes/rest/api-path.ts";
import { githubGraphql, githubRest } from "../scopes/scope-authorizers.ts";
import { parseScopes } from "../scopes/scopes.ts";
import type { ApiRequest } from "./api-upstream.ts";
import { HostIds } from "./host-ids.ts";

const NUMBERS: Readonly<Record<string, number>> = { "acme/widgets": 1, "acme/secret": 2, "acme/tools": 4 };
const NODES: Readonly<Record<string, unknown>> = {
  I_mine: { __typename: "Issue", at0: { nameWithOwner: "acme/widgets" } },
  I_secret: { __typename: "Issue", at0: { nameWithOwner: "acme/secret" } },
  P_board: { __typename: "ProjectV2" },
};

/** A code host that takes as long as it is told to, by a clock that only waiting moves. */
class Host {
  readonly asked: string[] = [];
  takesMs: (what: string) => number = () => 0;
  now = 0;
  readonly clock: Clock = {
    now: () => this.now,
    monotonic: () => this.now,
    sleep: async (ms) => void (this.now += ms),
  };
  readonly ids = new HostIds({
    upstream: { ask: async (request) => this.#ask(request) },
    host: { apiUrl: "http://api.example", graphqlUrl: "http://api.example/graphql" },
    userAgent: "svc",
    clock: this.clock,
  });

  async #ask({ url, body }: ApiRequest): Promise<unknown> {
    const variables =
      typeof body === "string" ? (JSON.parse(body) as { variables: { ids: string[] } }) : undefined;
    const what = variables?.variables.ids.join() ?? url.pathname;
    this.asked.push(what);
    this.now += this.takesMs(what);
    if (variables !== undefined) {
      return { data: { nodes: variables.variables.ids.map((id) => NODES[id] ?? null) } };
    }
    const byName = NUMBERS[url.pathname.slice("/repos/".length)];
    if (byName !== undefined) return { id: byName, full_name: url.pathname.slice("/repos/".length) };
    const [name] = Object.entries(NUMBERS).find(([, id]) => url.pathname === `/repositories/${id}`) ?? [];
    return name === undefined ? undefined : { id: NUMBERS[name], full_name: name };
  }
}

const held = (...repositories: string[]): TokenLimits => ({
  repositories,
  scopes: parseScopes("metadata:read,issues:write,projects:write").scopes,
});

describe("ids of the code host, asked by a limited token", () => {
  const rest = githubRest();
  const byNumber = async (host: Host, limits: TokenLimits, id: string): Promise<string> => {
    const path = parseApiPath(`/repositories/${id}`);
    assert.ok(typeof path !== "string");
    const resolver = host.ids.as(limits, async () => "Bearer x");
    const decision = await (
      await rest
    ).decide({ method: "GET", path, query: new URLSearchParams() }, limits, resolver);
    return decision.kind === "refused" ? decision.message : decision.required.repositories.join();
  };

  it("a number outside of the token causes the same requests as an unknown number", async () => {
    const host = new Host();
    const limits = held("acme/widgets", "acme/tools");
    // A token that may know the number looked it up before.
    assert.equal(await byNumber(host, held("acme/secret"), "2"), "acme/secret");
    for (const round of [1, 2]) {
      const asked: string[][] = [];
      for (const id of ["2", "999"]) {
        host.now += 60_000;
        host.asked.length = 0;
        assert.match(await byNumber(host, limits, id), /belongs to no repository of the token/);
        asked.push([...host.asked]);
      }
      assert.deepEqual(asked[0], asked[1], `round ${round}`);
      assert.deepEqual(asked[0], ["/repos/acme/widgets", "/repos/acme/tools"]);
    }
  });

  it("the numbers of its own repositories are found, and looked up once a minute", async () => {
    const host = new Host();
    const limits = held("acme/widgets", "acme/tools");
    assert.equal(await byNumber(host, limits, "4"), "acme/tools");
    assert.equal(await byNumber(host, limits, "1"), "acme/widgets");
    assert.equal(host.asked.length, 2);
  });

  it("a token for every repository asks what the number stands for", async () => {
    const host = new Host();
    assert.equal(await byNumber(host, held("*"), "2"), "acme/secret");
    assert.equal(await byNumber(host, held("acme/*"), "4"), "acme/tools");
    assert.deepEqual(host.asked, ["/repositories/2", "/repositories/4"]);
  });

  const graphql = githubGraphql();
  const byNode = async (host: Host, limits: TokenLimits, id: string): Promise<[string, number]> => {
    const begun = host.now;
    const resolver = host.ids.as(limits, async () => "Bearer x");
    const request = { query: `{ node(id: "${id}") { id } }`, operationName: undefined, variables: {} };
    const decision = await host.ids.evenly(
      async () => (await graphql).decide(request, limits, resolver),
      (outcome) => outcome.kind === "refused" && outcome.conceals === true,
    );
    return [decision.kind === "refused" ? decision.message : "allowed", host.now - begun];
  };

  it("a refused node id takes the same time whether it exists, is known, or neither", async () => {
    const host = new Host();
    const limits = held("acme/widgets");
    host.takesMs = (what) => (what === "I_secret" ? 130 : what === "P_board" ? 90 : 60);
    assert.equal((await byNode(host, held("acme/secret"), "I_secret"))[0], "allowed");
    const refusals: [string, number][] = [];
    for (const id of ["I_secret", "I_gone", "P_board", "I_secret", "I_gone", "P_board"]) {
      refusals.push(await byNode(host, limits, id));
    }
    assert.deepEqual(new Set(refusals.map(([, taken]) => taken)), new Set([250]));
    assert.deepEqual(new Set(refusals.map(([message]) => message)).size, 1);
    assert.equal(host.asked.filter((what) => what === "I_secret").length, 3);
  });

  it("one that is allowed does not wait, and is remembered", async () => {
    const host = new Host();
    host.takesMs = () => 60;
    assert.deepEqual(await byNode(host, held("acme/widgets"), "I_mine"), ["allowed", 60]);
    assert.deepEqual(await byNode(host, held("acme/widgets"), "I_mine"), ["allowed", 0]);
  });
});
