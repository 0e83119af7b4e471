import assert from "node:assert/strict";
import { chmod, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gitEnvironment, makeCertificate, run, until, type Finished } from "@devplat/testkit";
import { signInAtHost } from "../../interop/host-sign-in.ts";
import { INSTANCES, makeComposeStand, type ComposeStand, type InstanceName } from "./stand.ts";

describe("deploy/compose", { timeout: 900_000 }, () => {
  let stand: ComposeStand;
  let session: string;
  let clones = 0;
  before(async () => {
    stand = await makeComposeStand();
    await stand.compose("up", "--detach");
    session = await signInAtHost(stand.url);
  });
  after(() => stand?.stop());

  const api = async (path: string, init: RequestInit = {}, url = stand.url): Promise<unknown> => {
    const headers = { authorization: `Bearer ${session}`, "content-type": "application/json" };
    const response = await fetch(url + path, { ...init, headers });
    assert.ok(response.ok, `${path}: ${response.status} ${await response.clone().text()}`);
    return response.json();
  };
  const clone = async (url = stand.url, ...options: readonly string[]): Promise<Finished> => {
    const address = new URL(`${url}/org/r.git`);
    address.username = "ada";
    address.password = "host-token";
    const target = join(stand.folder, `../clone-${clones++}`);
    return run("git", [...options, "clone", "-q", String(address), target], { env: gitEnvironment() });
  };
  /** Clones, and insists on success. @returns how many fetches the code host has got for it */
  const fetchesOfClone = async (): Promise<number> => {
    const seen = stand.codeHost.calls.length;
    const { code, stderr } = await clone();
    assert.equal(code, 0, stderr);
    return stand.codeHost.calls.slice(seen).filter(({ command }) => command === "fetch").length;
  };
  /** The instance that has served the repository. */
  const owner = async (): Promise<InstanceName> => {
    for (const name of INSTANCES) {
      if ((await stand.compose("logs", "--no-color", name)).includes("/org/r.git")) return name;
    }
    return assert.fail("no instance has a request for the repository in its log");
  };
  const container = async (name: string, format: string): Promise<string> => {
    const id = (await stand.compose("ps", "--quiet", name)).trim();
    return stand.docker.ok("inspect", "--format", format, id);
  };
  const untilHealthy = async (name: string): Promise<void> =>
    void (await until(async () => (await container(name, "{{.State.Health.Status}}")) === "healthy"));

  it("runs every service without rights, on a read-only root file system", async () => {
    for (const name of ["nginx", ...INSTANCES, "postgres", "s3"]) {
      await untilHealthy(name);
      const format =
        "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.RestartPolicy.Name}}";
      assert.equal(await container(name, format), "true [ALL] unless-stopped", name);
    }
  });

  let first: InstanceName;
  it("serves a clone from the bucket while the instance that fetched it is stopped", async () => {
    await api("/api/cached-repos", { method: "POST", body: JSON.stringify({ owner: "org", name: "r" }) });
    assert.ok((await fetchesOfClone()) > 0, "the first clone comes from the code host");
    first = await owner();
    await until(async () => {
      const list = JSON.stringify(await api("/api/cached-repos", {}, stand.instanceUrl(first)));
      return /"packs":[1-9]\d*,"waiting":0/.test(list);
    });
    await stand.compose("stop", first);
    assert.equal(await fetchesOfClone(), 0);
  });

  it("uses the instance again after its start", async () => {
    await stand.compose("start", first);
    await untilHealthy(first);
    const second = INSTANCES.find((name) => name !== first) ?? first;
    await stand.compose("stop", second);
    assert.equal(await fetchesOfClone(), 0);
    await stand.compose("start", second);
    await untilHealthy(second);
  });

  it("keeps sessions, the list of repositories and cached data over down and up", async () => {
    await stand.compose("down");
    await assert.rejects(fetch(stand.url), /fetch failed/);
    await stand.compose("up", "--no-start");
    await stand.compose("up", "--detach");
    assert.match(JSON.stringify(await api("/api/cached-repos")), /"name":"r"/);
    assert.equal(await fetchesOfClone(), 0);
  });

  it("speaks TLS with compose.tls.yaml, and redirects plain HTTP", async () => {
    const { certFile, keyFile } = await makeCertificate(join(stand.folder, "secrets"), ["DNS:localhost"], {
      file: "tls",
    });
    await chmod(keyFile, 0o444);
    const files = ["--file", "compose.yaml", "--file", "compose.tls.yaml"];
    await stand.compose(...files, "up", "--detach", "--no-deps", "nginx");
    await untilHealthy("nginx");
    const ca = join(stand.folder, "../ca.crt");
    await copyFile(certFile, ca);
    const { code, stderr } = await clone(stand.tlsUrl, "-c", `http.sslCAInfo=${ca}`);
    assert.equal(code, 0, stderr);
    const plain = await fetch(`${stand.url}/healthz`, { redirect: "manual" });
    assert.deepEqual([plain.status, plain.headers.get("location")], [308, `https://127.0.0.1/healthz`]);
  });
});
