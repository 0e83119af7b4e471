import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  git,
  repositories,
  startCodeHost,
  startDockerd,
  tempFolder,
  until,
  type CodeHost,
  type Dockerd,
  type TempFolder,
} from "@devplat/testkit";
import manifest from "../../apps/svc/package.json" with { type: "json" };
import { buildImageContext } from "../../tools/release/image.ts";
import { baseArchive } from "./local-images.ts";

const MAX_BYTES = 150e6;

describe("deploy/image", { timeout: 300_000 }, () => {
  let folder: TempFolder;
  let docker: Dockerd;
  let codeHost: CodeHost;
  before(async () => {
    folder = await tempFolder("image");
    codeHost = await startCodeHost();
    await codeHost.addRepository("org", "r", { build: repositories.merges });
    docker = await startDockerd();
    await docker.ok("import", await baseArchive(folder.path), "base");
    const context = join(folder.path, "context");
    await buildImageContext(context);
    await docker.ok("build", "--network", "none", "--build-arg", "BASE=base", "--tag", "svc", context);
  });
  after(async () => {
    await docker.stop();
    await codeHost.stop();
    await folder.remove();
  });

  it("has at most 150 MB on a small base, and a user that is not root", async () => {
    const size = async (image: string): Promise<number> =>
      Number(await docker.ok("image", "inspect", "--format", "{{.Size}}", image));
    assert.ok((await size("svc")) <= MAX_BYTES, `${await size("svc")} bytes`);
    assert.equal(await docker.ok("image", "inspect", "--format", "{{.Config.User}}", "svc"), "65532:65532");
  });

  it("has a list of its components, made as that of the release", async () => {
    const label = await docker.ok(
      "image",
      "inspect",
      "--format",
      '{{index .Config.Labels "svc.sbom"}}',
      "svc",
    );
    const container = await docker.ok("create", "svc");
    const file = join(folder.path, "svc.cdx.json");
    await docker.ok("cp", `${container}:${label}`, file);
    const { bomFormat, metadata, components } = JSON.parse(await readFile(file, "utf8")) as Sbom;
    assert.deepEqual(
      [bomFormat, metadata.component.name, metadata.component.version],
      ["CycloneDX", "svc", manifest.version],
    );
    const versions = new Map(components.map(({ name, version }) => [name, version]));
    for (const name of ["pg", "zod", "undici"]) assert.ok(versions.has(name), name);
    assert.ok(versions.has("htmx.org"), "a script that pages load");
    assert.equal(versions.get("node"), process.versions.node);
    assert.match(versions.get("libatomic") ?? "", /^\d+\.\d+/);
    // Every package of which code is in the image has its licence there.
    await docker.ok("cp", `${container}:/opt/svc/THIRD-PARTY`, file);
    const licences = await readFile(file, "utf8");
    for (const name of ["pg", "htmx.org"])
      assert.ok(licences.includes(`${name} ${versions.get(name)} (`), name);
  });

  it("serves a clone without more rights, and ends at SIGTERM", async () => {
    const container = await start();
    assert.match(
      await docker.ok("exec", container.id, "/opt/svc/bin/node", "-p", "process.getuid()"),
      /^65532$/,
    );
    const temporary = ["/opt/svc/bin/node", "-e", 'fs.mkdtempSync("/tmp/a-")'];
    await docker.ok("exec", container.id, ...temporary);
    const target = join(folder.path, "clone");
    await git(["clone", "-q", `${container.url}/org/r.git`, target]);
    await docker.ok("stop", "--time", "30", container.id);
    assert.equal(await container.inspect("{{.State.ExitCode}}"), "0", await container.logs());
    assert.match(await container.logs(), /"stopped"/);
  });

  it("finishes a running clone at docker stop, and takes no new request", async () => {
    const container = await start();
    const goOn = Promise.withResolvers<void>();
    codeHost.inject({ command: "fetch", times: 1 }, { until: goOn.promise });
    const seen = codeHost.calls.length;
    const cloning = git(["clone", "-q", `${container.url}/org/r.git`, join(folder.path, "during-stop")]);
    await until(() => codeHost.calls.slice(seen).some(({ command }) => command === "fetch"));
    // A connection that is open before the stop, with a request that is complete after it.
    const open = connect(Number(new URL(container.url).port), "127.0.0.1");
    let answer = "";
    open.setEncoding("utf8").on("data", (text: string) => (answer += text));
    open.write("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    await once(open, "connect");
    // The service has read it when it has answered a later one.
    assert.equal((await fetch(`${container.url}/readyz`)).status, 200);
    const stopping = docker.ok("stop", "--time", "60", container.id);
    await until(async () => (await container.logs()).includes('"stopping"'));
    await assert.rejects(fetch(`${container.url}/readyz`), /fetch failed/);
    open.write("\r\n");
    await once(open, "close");
    assert.match(answer, /^HTTP\/1\.1 503 [^]*not ready/);
    assert.equal(await container.inspect("{{.State.Running}}"), "true");
    goOn.resolve();
    await cloning;
    await stopping;
    // 137 would be Docker's own kill at the end of the grace period.
    assert.equal(await container.inspect("{{.State.ExitCode}}"), "0", await container.logs());
  });

  /** Starts a container without rights, and waits until it is healthy. */
  const start = async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const settings = {
      SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
      SVC_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
      SVC_HOST_URL: codeHost.url,
      SVC_HOST_API_URL: codeHost.apiUrl,
      SVC_ENCRYPTION_KEY: "0".repeat(64),
      HEALTHCHECK_URL: `${url}/healthz`,
    };
    const hardening = "--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges";
    const id = await docker.ok(
      "run",
      ...hardening.split(" "),
      ..."--detach --network host --health-interval 1s --volume svc-data:/var/lib/svc".split(" "),
      ...Object.entries(settings).flatMap(([key, value]) => ["--env", `${key}=${value}`]),
      "svc",
      "serve",
      "--migrate",
    );
    const inspect = async (format: string): Promise<string> => docker.ok("inspect", "--format", format, id);
    const logs = async (): Promise<string> => (await docker.run("logs", id)).stderr;
    try {
      await until(async () => (await inspect("{{.State.Health.Status}}")) === "healthy");
    } catch (error) {
      assert.fail(`${String(error)}\n${await logs()}`);
    }
    return { id, url, inspect, logs };
  };
});

interface Sbom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } };
  readonly components: readonly { readonly name: string; readonly version: string }[];
}
