import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  type CodeHost,
  type ForwardProxy,
  freePort,
  makeCertificate,
  startCodeHost,
  startForwardProxy,
  type TempFolder,
  tempFolder,
} from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

/** Names that lead nowhere but through the proxy. */
const CODE_HOST = "http://code.example:8080";
const FLEET = "https://fleet.example/rules.yaml";
const DOCUMENT = "rules:\n  - {name: fleet, key: k, target: {path: ~/fleet.yaml, format: yaml}}\n";

const folders: TempFolder[] = [];
let host: CodeHost;
let fleet: Server;
let ca = "";
let proxy: ForwardProxy;

async function folder(): Promise<string> {
  const made = await tempFolder("agent-proxy");
  folders.push(made);
  return made.path;
}

before(async () => {
  host = await startCodeHost();
  host.addUser("ada", "unused-token", { repositories: [] });
  const path = await folder();
  const { key, cert } = await makeCertificate(path, ["DNS:fleet.example"]);
  ca = cert;
  fleet = createServer({ key, cert }, (_incoming, outgoing) => outgoing.end(DOCUMENT));
  fleet.listen(0, "127.0.0.1");
  await once(fleet, "listening");
  const routes = {
    "code.example:8080": Number(new URL(host.url).port),
    "fleet.example:443": (fleet.address() as AddressInfo).port,
  };
  proxy = await startForwardProxy({ routes, credentials: "ada:planted" });
});
after(async () => {
  fleet.closeAllConnections();
  fleet.close();
  await proxy.stop();
  await host.stop();
  for (const each of folders) await each.remove();
});
beforeEach(() => {
  proxy.seen.length = 0;
});

async function home(environment: Record<string, string>): Promise<Home> {
  const place = new Home(await folder(), environment);
  await place.write("ca.pem", ca);
  await place.configure(`store: {driver: embedded}
remote_config: {url: "${FLEET}", ca_cert: ~/ca.pem}
enrolments: {tools/hub: {engine: github, host: "${CODE_HOST}", client_id: "${host.oauth.clientId}"}}
`);
  await place.ok("secrets", "put", "k", "token=one");
  return place;
}

const through = (port: number): string => `http://ada:planted@127.0.0.1:${port}`;

describe("agent behind a forward proxy", () => {
  for (const names of [
    ["HTTPS_PROXY", "HTTP_PROXY"],
    ["https_proxy", "http_proxy"],
  ] as const) {
    it(`rules of a server come through ${names[0]}, by CONNECT [agent 4.4]`, async () => {
      const place = await home({ [names[0]]: through(proxy.port) });
      const { code, stderr } = await place.agent(["sync"]);
      assert.equal(code, 0, stderr);
      assert.equal(await place.read("fleet.yaml"), "token: one\n");
      assert.deepEqual(proxy.seen, ["CONNECT fleet.example:443"]);
      assert.doesNotMatch(stderr, /planted/);
    });

    it(`an enrolment goes through ${names[1]}, with whole URLs [agent 4.4]`, async () => {
      const place = await home({ [names[1]]: through(proxy.port) });
      const child = spawn(AGENT_LAUNCHER, ["enrol", "run", "tools/hub"], {
        env: place.env,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const ended = once(child, "close");
      let said = "";
      const approve = (chunk: Buffer): void => {
        said += chunk.toString();
        const [, userCode] = /enter the code (\S+)\n/.exec(said) ?? [];
        if (userCode !== undefined) host.oauth.devices.decide(userCode, { login: "ada" });
      };
      child.stdout.on("data", approve);
      child.stderr.on("data", approve);
      await ended;
      assert.equal(child.exitCode, 0, said);
      assert.equal(
        await place.ok("secrets", "get", "tools/hub", "access_token"),
        `${host.oauth.issued.at(-1) ?? ""}\n`,
      );
      assert.equal(proxy.seen[0], `POST ${CODE_HOST}/login/device/code`);
      assert.ok(proxy.seen.includes(`POST ${CODE_HOST}/login/oauth/access_token`), proxy.seen.join());
      assert.doesNotMatch(said, /planted/);
    });
  }

  it("a host in NO_PROXY is reached directly [agent 4.5]", async () => {
    const place = await home({ ALL_PROXY: through(proxy.port), NO_PROXY: ".example" });
    assert.match(
      (await place.agent(["sync"])).stderr,
      /the server cannot be reached \((?:ENOTFOUND|EAI_AGAIN)\)/,
    );
    const enrolled = await place.agent(["enrol", "run", "tools/hub"]);
    assert.match(enrolled.stderr, /code\.example:8080 cannot be reached \((?:ENOTFOUND|EAI_AGAIN)\)/);
    assert.deepEqual(proxy.seen, []);
  });

  it("a proxy that is down or refuses is named by its variable without its password [agent 4.6]", async () => {
    const port = await freePort();
    const down = await home({ ALL_PROXY: through(port) });
    const name = `the proxy http://127.0.0.1:${port} (ALL_PROXY)`;
    const cycle = await down.agent(["sync"]);
    const enrolled = await down.agent(["enrol", "run", "tools/hub"]);
    assert.equal(enrolled.code, 1);
    assert.ok(
      cycle.stderr.includes(`the server cannot be reached (${name} cannot be reached: ECONNREFUSED)`),
    );
    assert.ok(
      enrolled.stderr.includes(
        `code.example:8080 cannot be reached (${name} cannot be reached: ECONNREFUSED)`,
      ),
    );
    const wrong = await home({ ALL_PROXY: `http://ada:planted-wrong@127.0.0.1:${proxy.port}` });
    const refused = await wrong.agent(["sync"]);
    assert.match(
      refused.stderr,
      /the proxy \S+ \(ALL_PROXY\) does not connect: it requires other credentials \(407\)/,
    );
    const odd = await home({ HTTPS_PROXY: "socks5://ada:planted@127.0.0.1:1" });
    const misread = await odd.agent(["sync"]);
    assert.match(misread.stderr, /HTTPS_PROXY is not the address of an HTTP proxy/);
    for (const { stdout, stderr } of [cycle, enrolled, refused, misread]) {
      assert.doesNotMatch(stdout + stderr, /planted/);
    }
  });
});
