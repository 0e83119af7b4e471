import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { inspect } from "node:util";
import { Secret } from "@devplat/base";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { awsChain, fixedCredentials } from "./credentials.ts";

/** The chain reads the environment of its process, so each source has a process of its own. */
const PROGRAM = `
  const { awsChain } = await import(${JSON.stringify(import.meta.resolve("./credentials.ts"))});
  const source = awsChain();
  const show = ({ accessKeyId, secretAccessKey, sessionToken }) =>
    [accessKeyId, secretAccessKey.reveal(), sessionToken?.reveal() ?? "none"].join(" ");
  try {
    console.log(show(await source.current()));
    if (process.env.RENEW) console.log(show(await source.current(true)));
  } catch (error) {
    console.log(error.code, error.message, "| " + error.hint);
  }
`;

async function chain(environment: Record<string, string>, folder: string): Promise<string[]> {
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", PROGRAM];
  const env = { PATH: process.env["PATH"], HOME: folder, AWS_EC2_METADATA_DISABLED: "true", ...environment };
  const { code, stdout, stderr } = await run(process.execPath, args, { env, cwd: folder });
  assert.equal(code, 0, stderr);
  return stdout.trim().split("\n");
}

describe("awsChain", () => {
  let folder: TempFolder;
  const seen: string[] = [];
  /**
   * A STAND-IN for the metadata services of a container and an instance, and for STS: none of them can be installed. It
   * responds as their documentation says, with another pair of keys each time.
   */
  const metadata = createServer((request, response) => {
    const url = request.url ?? "";
    seen.push(`${request.method} ${url}`);
    const Expiration = new Date(Date.now() + 3_600_000).toISOString();
    const keys = { AccessKeyId: `ID${seen.length}`, SecretAccessKey: "secret", Token: "token", Expiration };
    const json = (value: unknown): void =>
      void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (url === "/container" && request.headers.authorization === "container-token") return json(keys);
    if (url === "/latest/api/token" && request.method === "PUT") return void response.end("imds-token");
    if (url.startsWith("/latest/") && request.headers["x-aws-ec2-metadata-token"] === "imds-token") {
      if (url.endsWith("/")) return void response.end("role");
      if (url.endsWith("/role")) return json({ ...keys, Code: "Success", Type: "AWS-HMAC" });
    }
    if (url === "/" && request.method === "POST")
      return void identity(request).then((xml) => response.end(xml));
    response.writeHead(404).end();
  });
  let address: string;

  async function identity(request: IncomingMessage): Promise<string> {
    const body = Buffer.concat((await request.toArray()) as Buffer[]).toString();
    assert.equal(new URLSearchParams(body).get("WebIdentityToken"), "the-token");
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const credentials = `<AccessKeyId>WEB</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken><Expiration>${expires}</Expiration>`;
    return `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>${credentials}</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;
  }

  before(async () => {
    folder = await tempFolder("aws");
    metadata.listen(0, "127.0.0.1");
    await once(metadata, "listening");
    address = `http://127.0.0.1:${(metadata.address() as AddressInfo).port}`;
    await writeFile(
      join(folder.path, "credentials"),
      "[default]\naws_access_key_id = FILE\naws_secret_access_key = file-secret\n[other]\naws_access_key_id = OTHER\naws_secret_access_key = other-secret\naws_session_token = other-token\n",
    );
    await writeFile(join(folder.path, "token"), "the-token");
  });
  after(async () => {
    metadata.close();
    metadata.closeAllConnections();
    await folder.remove();
  });

  it("takes keys from the environment", async () => {
    const environment = {
      AWS_ACCESS_KEY_ID: "ENV",
      AWS_SECRET_ACCESS_KEY: "secret",
      AWS_SESSION_TOKEN: "token",
    };
    assert.deepEqual(await chain(environment, folder.path), ["ENV secret token"]);
  });

  it("takes a profile from the shared file", async () => {
    const file = { AWS_SHARED_CREDENTIALS_FILE: join(folder.path, "credentials") };
    assert.deepEqual(await chain(file, folder.path), ["FILE file-secret none"]);
    assert.deepEqual(await chain({ ...file, AWS_PROFILE: "other" }, folder.path), [
      "OTHER other-secret other-token",
    ]);
  });

  it("takes a web identity", async () => {
    const found = await chain(
      {
        AWS_WEB_IDENTITY_TOKEN_FILE: join(folder.path, "token"),
        AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/tests",
        AWS_ENDPOINT_URL_STS: address,
        AWS_REGION: "eu-west-3",
      },
      folder.path,
    );
    assert.deepEqual(found, ["WEB secret token"]);
  });

  it("takes the metadata of a container, and asks again to renew", async () => {
    const found = await chain(
      {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${address}/container`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN: "container-token",
        RENEW: "1",
      },
      folder.path,
    );
    const [first = "", second = ""] = found;
    assert.match(first, /^ID\d+ secret token$/);
    assert.match(second, /^ID\d+ secret token$/);
    assert.notEqual(first, second);
  });

  it("takes the metadata of an instance", async () => {
    const found = await chain(
      { AWS_EC2_METADATA_SERVICE_ENDPOINT: address, AWS_EC2_METADATA_DISABLED: "false" },
      folder.path,
    );
    assert.match(found.join(), /^ID\d+ secret token$/);
    assert.ok(seen.includes("PUT /latest/api/token"));
  });

  it("says that no source has credentials, without the texts of the sources", async () => {
    const [message = ""] = await chain({ AWS_PROFILE: "a-profile-that-is-not-there" }, folder.path);
    assert.match(
      message,
      /^credentials_missing Cannot get credentials for the object store: .*\| set the two keys/,
    );
    assert.ok(!message.includes("a-profile"));
  });
});

describe("credentials", () => {
  it("load no library before they are used, and print no secret", async () => {
    const source = fixedCredentials("ID", new Secret("the-secret"));
    const shown = inspect([source, await source.current(true), awsChain()], { depth: 9 });
    assert.ok(!(shown + JSON.stringify(await source.current())).includes("the-secret"));
    const program = `
      import { registerHooks } from "node:module";
      const loaded = [];
      registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
      await import(${JSON.stringify(import.meta.resolve("./index.ts"))});
      console.log(loaded.filter((url) => /aws|smithy|xmldom|undici/.test(url)).length, loaded.length > 3);
    `;
    const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", program];
    const { stdout, stderr } = await run(process.execPath, args);
    assert.equal(stdout.trim(), "0 true", stderr);
  });
});
