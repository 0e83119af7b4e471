import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { run } from "./process.ts";

export interface CertificateOptions {
  /** The first words of the file names. Default: `server`. */
  readonly file?: string;
  /** Common name of the subject. Default: the first name. */
  readonly subject?: string;
}

/** A self-signed certificate: paths of its files, and their content as PEM. */
export interface TestCertificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Makes a self-signed certificate and its key with openssl, valid for two days.
 *
 * @param names as openssl has them: `DNS:localhost`, `IP:127.0.0.1`
 */
export async function makeCertificate(
  folder: string,
  names: readonly [string, ...string[]],
  { file = "server", subject = names[0].replace(/^\w+:/, "") }: CertificateOptions = {},
): Promise<TestCertificate> {
  const [certFile, keyFile] = [join(folder, `${file}.crt`), join(folder, `${file}.key`)];
  const made = await run("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" "),
    "-subj",
    `/CN=${subject}`,
    "-addext",
    `subjectAltName=${names.join(",")}`,
    "-keyout",
    keyFile,
    "-out",
    certFile,
  ]);
  if (made.code !== 0) throw TestkitError.failed("openssl", `it ended with ${made.code}: ${made.stderr}`);
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  return { certFile, keyFile, cert, key };
}
