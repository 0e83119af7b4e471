import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import { MemoryLoan } from "../forwards/memory-loan.test-kit.ts";
import { failedDial, fingerprintOf, MemoryRemotes, remoteView } from "../forwards/memory-remotes.test-kit.ts";
import type { RouteParts } from "../web/routes/route-parts.ts";
import {
  identityView,
  MemorySshAgent,
  PASSPHRASE,
  sshAgentStatus,
} from "../ssh-agent/memory-ssh-agent.test-kit.ts";
import { ruleView, signedIn } from "../web/memory-view.test-kit.ts";
import {
  startTestServer,
  type Answer,
  type RequestOptions,
  type TestServer,
} from "../web/server.test-kit.ts";
import type { Json } from "@devplat/web-kit/openapi";
import { PROBLEM_TYPES } from "./problems/problem.ts";
import { apiRoutes } from "./routes.ts";
import { schemaFaults } from "./schema.test-kit.ts";
import { AgentError } from "../../errors.ts";
import { VolumeError } from "../volumes/errors/volume-error.ts";

interface OpenApi {
  readonly openapi: string;
  readonly paths: Record<
    string,
    Record<string, { responses: Record<string, { content: Record<string, { schema: Json }> }> }>
  >;
  readonly components: {
    readonly schemas: Record<string, Json>;
    readonly "x-problem-types": Record<string, Json>;
  };
}

const remotes = new MemoryRemotes([
  remoteView("build"),
  remoteView("failed", {
    state: "offline",
    proven: false,
    error: { class: "dns", message: "no address", advice: "Check the name." },
    next_attempt_at: signedIn.time,
    tokens: {
      lent: [{ created_at: signedIn.time, expires_at: signedIn.time, last_used_at: null, handouts: 1 }],
      added_policies: ["default"],
      problem: "denied",
      asking: true,
    },
  }),
]);
let server: TestServer;
let document: OpenApi;
before(async () => {
  server = await startTestServer({
    configuration: "store: { driver: embedded }\nenrolments: {a: {engine: ssh}}",
    editablePaths: ["tools"],
    token: "hvs.held",
    remotes,
    peerLoan: new MemoryLoan(),
    volumes: {
      release: async (name) => {
        if (name === "app") return 2;
        const code = name === "stuck" ? "content_unwritable" : "volume_unknown";
        throw new VolumeError(code, "the files cannot be removed: EPERM", { hint: "Check who owns them." });
      },
    },
    mount: {
      mount: async () => undefined,
      unmount: async (lazy) => {
        if (!lazy) throw new AgentError("mount_failed", "cannot unmount /home/ada/.daemon: EBUSY");
      },
    },
    sshAgent: new MemorySshAgent(
      sshAgentStatus({
        sources: [{ name: "team", source: "kv", error: null, identities: [identityView("ada@work")] }],
        refusals: [{ at: signedIn.time, fingerprint: "SHA256:a", reason: "not confirmed" }],
        questions: [
          {
            id: "asked",
            kind: "confirm",
            identity: "ada@work",
            fingerprint: "SHA256:a",
            facts: [{ text: "host example.com", verified: true }],
            asked_at: signedIn.time,
            expires_at: signedIn.time,
          },
        ],
      }),
    ),
  });
  const run = {
    at: signedIn.time,
    exit_code: 0,
    timed_out: false,
    duration_ms: 1.5,
    stdout_bytes: 0,
    stderr_bytes: 0,
  };
  server.view.set({
    rules: [ruleView("npm", { run }), ruleView("new", { version: null, last_synced: null })],
  });
  for (const name of ["read", "replaced", "deleted"])
    await server.store.write(`tools/${name}`, parseFields('{"a":1.5}'));
  document = JSON.parse((await server.send("/api/openapi.json")).body) as OpenApi;
});
after(() => server.stop());

async function change(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { token } = JSON.parse((await server.send("/api/v1/csrf")).body) as { token: string };
  const headers = { "X-CSRF-Token": token, "Content-Type": "application/json", ...options.headers };
  return await server.send(path, { ...options, method, headers });
}
const get = (path: string) => (): Promise<Answer> => server.send(path);
const form = (path: string, body: string) => (): Promise<Answer> =>
  server.send(path, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body,
  });
const secret = (method: string, name: string, body?: string) => (): Promise<Answer> =>
  change(method, `/api/v1/secrets/tools/${name}`, body === undefined ? {} : { body });
const sshAgent = (rest: string, body?: object) => (): Promise<Answer> =>
  change("POST", `/api/v1/ssh-agent/${rest}`, body === undefined ? {} : { body: JSON.stringify(body) });
const remote = (method: string, rest: string, body?: object) => (): Promise<Answer> =>
  change(method, `/api/v1/ssh/remotes${rest}`, body === undefined ? {} : { body: JSON.stringify(body) });
const peerSocket = (rest: string, body?: object) => (): Promise<Answer> =>
  change("POST", `/api/v1/peer-socket/${rest}`, body === undefined ? {} : { body: JSON.stringify(body) });

/** For each operation that the document describes: requests whose responses it has to describe. */
const SAMPLES: Readonly<Record<string, readonly (() => Promise<Answer>)[]>> = {
  "GET /api/v1/status": [get("/api/v1/status")],
  "GET /api/v1/rules": [get("/api/v1/rules")],
  "GET /api/v1/csrf": [get("/api/v1/csrf")],
  "GET /api/v1/token": [get("/api/v1/token")],
  "POST /api/v1/sync": [
    () => change("POST", "/api/v1/sync"),
    () => change("POST", "/api/v1/sync?wait=true"),
    () => server.send("/api/v1/sync", { method: "POST" }),
  ],
  "POST /api/v1/unlock": [() => change("POST", "/api/v1/unlock")],
  // Checked below: it does not end by itself.
  "GET /api/v1/events": [],
  "GET /api/v1/config": [get("/api/v1/config")],
  "GET /api/v1/config/download": [get("/api/v1/config/download?format=reg1")],
  "GET /api/v1/secrets/{path}": [
    get("/api/v1/secrets/"),
    get("/api/v1/secrets/tools/read"),
    get("/api/v1/secrets/tools/read?reveal=true"),
    get("/api/v1/secrets/tools/absent"),
    get("/api/v1/secrets/tools//read"),
  ],
  "POST /api/v1/secrets/{path}": [
    secret("POST", "created", '{"fields":{"a":1}}'),
    secret("POST", "created", '{"fields":{"a":"1"}}'),
  ],
  "PUT /api/v1/secrets/{path}": [
    secret("PUT", "replaced", '{"fields":{"a":[]}}'),
    secret("PUT", "replaced", "no JSON"),
  ],
  "DELETE /api/v1/secrets/{path}": [secret("DELETE", "deleted"), secret("DELETE", "deleted")],
  "GET /api/v1/ssh/remotes": [get("/api/v1/ssh/remotes")],
  "POST /api/v1/ssh/remotes": [
    remote("POST", "", { host: "new" }),
    remote("POST", "", { host: "NEW" }),
    () => {
      remotes.failure = failedDial("refused");
      return remote("POST", "", { host: "other" })();
    },
    () => {
      const [key] = [remoteView("").host_key ?? assert.fail()];
      remotes.offered = [{ ...key, host: "other:22", known: true, pinned: fingerprintOf("O") }];
      return remote("POST", "", { host: "other" })();
    },
  ],
  "PATCH /api/v1/ssh/remotes/{host}": [
    remote("PATCH", "/build", { ask: "first" }),
    remote("PATCH", "/build", { a: 1 }),
  ],
  "DELETE /api/v1/ssh/remotes/{host}": [remote("DELETE", "/new"), remote("DELETE", "/new")],
  "POST /api/v1/ssh/remotes/{host}/host-key": [
    remote("POST", "/build/host-key"),
    remote("POST", "/build/host-key", { accept_fingerprint: fingerprintOf("A") }),
  ],
  "POST /api/v1/ssh/remotes/{host}/retry": [
    remote("POST", "/build/retry"),
    remote("POST", "/elsewhere/retry"),
  ],
  "POST /api/v1/ssh/remotes/{host}/revoke": [remote("POST", "/build/revoke")],
  "POST /api/v1/ssh/remotes/{host}/consent": [remote("POST", "/build/consent", { allowed: true })],
  "POST /api/v1/peer-socket/consent": [
    peerSocket("consent", { allowed: true }),
    peerSocket("consent", { allowed: true }),
  ],
  "POST /api/v1/peer-socket/revoke": [peerSocket("revoke")],
  "GET /api/v1/ssh-agent": [get("/api/v1/ssh-agent")],
  "POST /api/v1/ssh-agent/refresh": [sshAgent("refresh")],
  "POST /api/v1/ssh-agent/keys/unlock": [
    sshAgent("keys/unlock", { name: "ada@work", passphrase: PASSPHRASE }),
    sshAgent("keys/unlock", { name: "ada@work", passphrase: "wrong" }),
    sshAgent("keys/unlock", { name: "ada@work" }),
  ],
  "POST /api/v1/ssh-agent/keys/show": [sshAgent("keys/show")],
  "POST /api/v1/ssh-agent/questions/{id}": [
    sshAgent("questions/absent", { confirmed: true }),
    sshAgent("questions/asked", { confirmed: false }),
  ],
  "POST /api/v1/mount": [
    () => change("POST", "/api/v1/mount"),
    () => change("POST", "/api/v1/mount", { body: JSON.stringify({ path: "/" }) }),
  ],
  "POST /api/v1/unmount": [
    () => change("POST", "/api/v1/unmount", { body: JSON.stringify({ lazy: true }) }),
    () => change("POST", "/api/v1/unmount"),
    () => change("POST", "/api/v1/unmount", { body: JSON.stringify({ lazy: "yes" }) }),
  ],
  "POST /api/v1/docker/volumes/{name}/release": [
    () => change("POST", "/api/v1/docker/volumes/app/release"),
    () => change("POST", "/api/v1/docker/volumes/absent/release"),
    () => change("POST", "/api/v1/docker/volumes/stuck/release"),
    () => change("POST", "/api/v1/docker/volumes/app/release", { body: JSON.stringify({ force: true }) }),
  ],
  "POST /api/v1/remote/browse": [
    form("/api/v1/remote/browse", "url=https%3A%2F%2Fexample.test%2F"),
    form("/api/v1/remote/browse", "url=file"),
  ],
  "POST /api/v1/remote/notify": [
    form("/api/v1/remote/notify", "level=info&title=t"),
    form("/api/v1/remote/notify", "level=x"),
  ],
  "POST /api/v1/remote/clipboard": [
    form("/api/v1/remote/clipboard", "text=t"),
    form("/api/v1/remote/clipboard", "text="),
  ],
  "GET /api/openapi.json": [get("/api/openapi.json")],
};

describe("/api/openapi.json", () => {
  it("describes exactly the routes below /api/ that are served [agent 24.21]", () => {
    assert.equal(document.openapi, "3.1.0");
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const { routes } = apiRoutes({ secrets: {} } as unknown as RouteParts);
    const served = routes
      .filter(({ method, path }) => method !== "ALL" && path.startsWith("/api/"))
      .map(({ method, path }) => `${method} ${path.replace("*", "{path}").replace(/:(\w+)/, "{$1}")}`);
    assert.deepEqual(described.toSorted(), [...new Set(served)].toSorted());
    assert.deepEqual(Object.keys(SAMPLES).toSorted(), described.toSorted(), "a sample for each");
  });

  for (const [operation, samples] of Object.entries(SAMPLES)) {
    it(`${operation} responds as the document says [agent 24.21]`, async () => {
      const [method = "", path = ""] = operation.split(" ");
      const responses = document.paths[path]?.[method.toLowerCase()]?.responses ?? {};
      for (const sample of samples) {
        const response = await sample();
        if (response.status === 204) {
          assert.ok("204" in responses && response.body === "");
          continue;
        }
        const content = (responses[response.status] ?? responses["default"])?.content ?? {};
        const type = response.status < 400 ? "application/json" : "application/problem+json";
        assert.equal((response.headers["content-type"] ?? "").split(";")[0], type);
        const schema = content[type]?.schema;
        assert.ok(schema !== undefined, `${response.status} is described`);
        assert.deepEqual(schemaFaults(JSON.parse(response.body), schema, document.components.schemas), []);
      }
    });
  }

  it("problems are documents by RFC 9457 that keep error, code and hint", async () => {
    const unwritable = await change("PUT", "/api/v1/secrets/other/x", { body: '{"fields":{"a":"1"}}' });
    const foreignHost = await server.send("/api/v1/status", { headers: { Host: "example.test" } });
    for (const [response, code] of [
      [unwritable, "not_editable"],
      [foreignHost, "host_refused"],
    ] as const) {
      assert.equal(response.headers["content-type"], "application/problem+json", code);
      const problem = JSON.parse(response.body) as Record<string, unknown>;
      const { status, title, hint } = PROBLEM_TYPES[code];
      const type = `/api/openapi.json#/components/x-problem-types/${code}`;
      const { detail, ...members } = problem;
      assert.deepEqual(members, { type, title, status, code, hint, error: detail });
      assert.equal(response.status, status);
      assert.deepEqual(document.components["x-problem-types"][code], { status, title, hint });
    }
  });

  it("describes the status without a sign-in, and the content of events [agent 2.7]", async () => {
    const { schemas } = document.components;
    const stream = await server.open("/api/v1/events");
    let sent = "";
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      sent += chunk.toString();
      if (sent.includes("\n\n", sent.indexOf("data: "))) break;
    }
    const data = /^data: (.*)$/m.exec(sent)?.[1] ?? "";
    assert.deepEqual(schemaFaults(JSON.parse(data), schemas["Status"] ?? {}, schemas), []);
    await using out = await startTestServer();
    out.view.set({ status: { authenticated: false } });
    const body: unknown = JSON.parse((await out.send("/api/v1/status")).body);
    assert.deepEqual(schemaFaults(body, schemas["PublicStatus"] ?? {}, schemas), []);
  });
});
