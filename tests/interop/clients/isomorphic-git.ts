/**
 * The isomorphic-git client of the interop tests, a program: clone | shallow | fetch, then URL and FOLDER. Takes
 * credentials from CLIENT_USER and CLIENT_PASSWORD.
 */
import fs from "node:fs";
import { clone, fetch } from "isomorphic-git";
import http from "isomorphic-git/http/node";

const [verb, url = "", dir = ""] = process.argv.slice(2);
const username = process.env["CLIENT_USER"];
const password = process.env["CLIENT_PASSWORD"];
const common = {
  fs,
  http,
  dir,
  // Asked only after a 401; without an account the 401 is the end.
  ...(username === undefined || password === undefined ? {} : { onAuth: () => ({ username, password }) }),
};

if (verb === "clone") await clone({ ...common, url, noCheckout: true });
else if (verb === "shallow")
  await clone({ ...common, url, noCheckout: true, depth: 1, singleBranch: true, noTags: true });
else if (verb === "fetch") await fetch({ ...common, remote: "origin", tags: true });
else throw new TypeError(`unknown verb ${verb}`);
