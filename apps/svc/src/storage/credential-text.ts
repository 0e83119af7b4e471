import { Secret } from "@devplat/base";
import { z } from "zod";
import type { HostCredential } from "../code-host/host-account.ts";
import { SvcError } from "../errors.ts";

const credentialSchema = z.object({
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  expiresAt: z.number().optional(),
});

/** A credential as one text, to be encrypted as a whole. */
export function credentialText({ accessToken, refreshToken, expiresAt }: HostCredential): Secret {
  return new Secret(
    JSON.stringify({ accessToken: accessToken.reveal(), refreshToken: refreshToken?.reveal(), expiresAt }),
  );
}

/** @throws SvcError `encryption_key`: it is not such a text */
export function readCredential(text: Secret): HostCredential {
  const revealed = text.reveal();
  // Before refresh tokens were kept, the text was the access token alone.
  if (!revealed.startsWith("{")) {
    return { accessToken: text, refreshToken: undefined, expiresAt: undefined };
  }
  const { success, data } = credentialSchema.safeParse(parsed(revealed));
  // The parser's own message would quote the secret.
  if (!success) throw new SvcError("encryption_key", "A stored credential is damaged");
  return {
    accessToken: new Secret(data.accessToken),
    refreshToken: data.refreshToken === undefined ? undefined : new Secret(data.refreshToken),
    expiresAt: data.expiresAt,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
