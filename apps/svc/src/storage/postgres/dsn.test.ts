import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { parsePostgresDsn } from "./dsn.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-dsn-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const pem = join(folder, "ca.pem");
writeFileSync(pem, "a certificate");

const parse = (dsn: string): ReturnType<typeof parsePostgresDsn> => parsePostgresDsn(new Secret(dsn));

describe("parsePostgresDsn", () => {
  it("reads user, password, host, port and database, percent-encoded or not", () => {
    const { password, ...rest } = parse(
      "postgresql://svc%40x:p%25%2Fw@db.example:6543/my%20db?application_name=a",
    );
    assert.equal(password?.reveal(), "p%/w");
    assert.deepEqual(rest, {
      host: "db.example",
      port: 6543,
      user: "svc@x",
      database: "my db",
      applicationName: "a",
      tls: undefined,
    });
  });

  it("leaves out what is not written, and takes IPv6 addresses and socket folders", () => {
    const { host, port, user, password, database } = parse("postgres://[::1]");
    assert.deepEqual([host, port, user, password, database], ["::1", 5432, undefined, undefined, undefined]);
    assert.equal(parse("postgres://svc@localhost/svc?host=/run/postgresql").host, "/run/postgresql");
  });

  it("the values of sslmode mean the same as in libpq", () => {
    const tls = (parameters: string) => parse(`postgres://db.example/svc?${parameters}`).tls;
    assert.equal(tls("sslmode=disable"), undefined);
    assert.equal(tls("sslmode=require")?.rejectUnauthorized, false);
    assert.equal(tls(`sslmode=require&sslrootcert=${pem}`)?.rejectUnauthorized, true);
    const chainOnly = tls(`sslmode=verify-ca&sslrootcert=${pem}`);
    assert.equal(chainOnly?.rejectUnauthorized, true);
    assert.equal(typeof chainOnly?.checkServerIdentity, "function");
    const full = tls(`sslmode=verify-full&sslrootcert=${pem}&sslcert=${pem}&sslkey=${pem}`);
    assert.deepEqual(full, {
      servername: "db.example",
      ca: "a certificate",
      cert: "a certificate",
      key: "a certificate",
      rejectUnauthorized: true,
    });
  });
});
