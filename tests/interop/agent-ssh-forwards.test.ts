import assert from "node:assert/strict";
import { lstat } from "node:fs/promises";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { REMOTES, SshStand } from "./agent-ssh-stand.ts";

describe("managed SSH forwards of a running daemon", () => {
  it("a remote is added once its key is confirmed, serves its offers, and is removed", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    assert.deepEqual(await stand.list(), { remotes: [], file_problem: null });

    const added = await stand.add({ offers: ["browse"] });
    assert.equal(added.host_key?.key, stand.sshd.hostKey);
    const remote = await stand.state("connected");
    assert.equal(remote.proven, true);
    assert.equal(remote.trust, "pin");
    assert.equal(remote.remote_socket_expanded, stand.remoteSocket);
    assert.match(await stand.home.read(".config/daemon/ssh.yaml"), /host_key: ssh-ed25519 /);
    assert.equal((await lstat(stand.file)).mode & 0o777, 0o600);

    assert.match(await stand.remote("/healthz"), /"nonce":"[0-9a-f]{32}"}200$/);
    for (const path of ["/api/v1/token", "/api/v1/status", REMOTES, "/api/v1/secrets/", "/metrics"]) {
      assert.match(await stand.remote(path), /404$/, path);
    }
    assert.match(await stand.remote("/healthz", "-H", "Host: evil.test"), /403$/);

    const status = (await stand.get("/api/v1/status")) as { remotes: RemoteView[] };
    assert.equal(status.remotes[0]?.state, "connected");
    assert.match(await stand.home.ok("status"), /^127\.0\.0\.1 .* connected /m);
    const doctor = (await stand.home.agent(["doctor"])).stdout;
    assert.match(doctor, /^ok +forward to 127\.0\.0\.1: connected$/m);
    assert.match(doctor, /^ok +ssh: OpenSSH \d/m);
    const metrics = await stand.metrics();
    assert.match(metrics, /^agent_ssh_forward_up\{host="127\.0\.0\.1"\} 1$/m);
    assert.match(metrics, /^agent_ssh_tokens_lent\{host="127\.0\.0\.1"\} 0$/m);

    assert.equal((await stand.call("POST", "", { host: "127.0.0.1" })).status, 409);
    assert.equal((await stand.call("PATCH", "/127.0.0.1", { enabled: false })).status, 200);
    await stand.state("disabled");
    await until(async () => (await stand.connections()).length === 0);
    assert.equal((await stand.call("PATCH", "/127.0.0.1", { enabled: true })).status, 200);
    await stand.state("connected");
    assert.equal((await stand.call("DELETE", "/127.0.0.1")).status, 204);
    await until(async () => (await stand.connections()).length === 0);
    assert.equal((await stand.call("DELETE", "/127.0.0.1")).status, 404);
    assert.deepEqual((await stand.list()).remotes, []);
  });
});
