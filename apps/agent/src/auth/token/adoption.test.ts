import assert from "node:assert/strict";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Secret, silentLogger, type Logger } from "@devplat/base";
import type { TokenInfo, VaultClient } from "@devplat/secret-store";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { AgentError } from "../../errors.ts";
import { removeToken } from "../sign-out.ts";
import { Adoption } from "./adoption.ts";
import { IdentityPin } from "./identity-pin.ts";
import { TokenFile } from "./token-file.ts";
import { tokenInfo } from "./token-info.test-kit.ts";

const signal = new AbortController().signal;
const token = new Secret("hvs.of-the-login");
const ADA = tokenInfo({ entityId: "ada", displayName: "ldap-ada" });
const BOB = tokenInfo({ entityId: "bob", displayName: "ldap-bob" });

let folder: TempFolder;
let pin: IdentityPin;
beforeEach(async () => {
  folder = await tempFolder("adoption");
  pin = new IdentityPin(folder.path, true);
});
afterEach(() => folder.remove());

/** @param revoked gets the tokens that the store is told to revoke */
function adoption(
  tokenFile: TokenFile,
  info: TokenInfo,
  revoked: string[] = [],
  logger: Logger = silentLogger,
): Adoption {
  const client: Pick<VaultClient, "lookupSelf" | "revokeSelf"> = {
    lookupSelf: () => Promise.resolve(info),
    revokeSelf: (options) => {
      revoked.push(options?.token?.reveal() ?? "");
      return Promise.resolve();
    },
  };
  const scope = { policies: [], noDefaultPolicy: false };
  return new Adoption({ client: client as VaultClient, pin, tokenFile, scope, logger });
}

describe("adoption of the token of a login", () => {
  it("is known as ours by all who find its file [agent 31.2]", async () => {
    /** A token file with a daemon that adopts the token when the file is there, and a user who signs out then. */
    class NoticedFile extends TokenFile {
      ownLogin: boolean | undefined;

      override async write(written: Secret): Promise<string> {
        const signature = await super.write(written);
        await pin.adopt(written, ADA, false);
        ({ ownLogin: this.ownLogin } = await removeToken({ tokenFile: this, pin }));
        return signature;
      }
    }
    const file = new NoticedFile(join(folder.path, "token"));
    await adoption(file, ADA).adopt(token, { signal });
    assert.equal(file.ownLogin, true, "signing out revokes it");
  });

  it("keeps the former identity if the token file cannot be written", async () => {
    class RefusedFile extends TokenFile {
      override write(): Promise<string> {
        return Promise.reject(new AgentError("token_file_refused", "the disk is full"));
      }
    }
    const file = new RefusedFile(join(folder.path, "token"));
    const revoked: string[] = [];
    const options = { anyIdentity: true, signal };
    await assert.rejects(adoption(file, ADA).adopt(token, options), /the disk is full/);
    assert.equal(await pin.read(), undefined);
    await adoption(new TokenFile(file.path), ADA).adopt(token, options);
    const former = await pin.read();
    const other = new Secret("hvs.of-bob");
    await assert.rejects(adoption(file, BOB, revoked).adopt(other, options), /the disk is full/);
    assert.deepEqual(await pin.read(), former);
    assert.deepEqual(revoked, ["hvs.of-bob"]);
  });

  it("tells the first error if the former identity cannot be put back either", async () => {
    const identity = join(folder.path, "identity.json");
    class RefusedFile extends TokenFile {
      override async write(): Promise<string> {
        // A folder cannot be removed as a file.
        await rm(identity);
        await mkdir(identity);
        throw new AgentError("token_file_refused", "the disk is full");
      }
    }
    const warnings: string[] = [];
    const logger = {
      ...silentLogger,
      warn: (_fields: object, message: string) => void warnings.push(message),
    };
    const revoked: string[] = [];
    const file = new RefusedFile(join(folder.path, "token"));
    await assert.rejects(adoption(file, ADA, revoked, logger).adopt(token, { signal }), /the disk is full/);
    assert.match(warnings.join(), /the identity of the former token could not be kept/);
    assert.deepEqual(revoked, ["hvs.of-the-login"]);
  });
});
